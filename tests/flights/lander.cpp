// One flight: the world of gymnasium's LunarLander-v3, the controller and the reward. Every sum stands
// in the order of the Python code, and what is handed out in single precision is rounded there: a
// compiler that vectorises this file has left such a rounding out, so it is built without.
#include "lander.h"

#include <Box2D/Box2D.h>

#include <cmath>

namespace {

// Constants of gymnasium's lunar_lander.py.
const double SCALE = 30, WIDTH = 600 / SCALE, HEIGHT = 400 / SCALE, RATE = 50;
const double MAIN_POWER = 13.0, SIDE_POWER = 0.6;
const int MAIN_DOWN = 4, SIDE_AWAY = 12, SIDE_HEIGHT = 14;
const int LEG_AWAY = 20, LEG_DOWN = 18, LEG_WIDTH = 2, LEG_HEIGHT = 8;
const int OUTLINE[6][2] = {{-14, 17}, {-17, 0}, {-17, -10}, {17, -10}, {17, 0}, {14, 17}};
const double FUEL[4] = {0.0, 0.03, 0.30, 0.03};

float single(double value) {
    volatile float rounded = static_cast<float>(value);
    return rounded;
}

b2Vec2 vector(double x, double y) { return b2Vec2(single(x), single(y)); }

struct Craft : b2ContactListener {
    b2World world{b2Vec2(0.0f, -10.0f)};
    b2Body *lander = nullptr, *legs[2] = {nullptr, nullptr};
    bool touching[2] = {false, false}, crashed = false;

    explicit Craft(const Terrain& terrain) {
        make_ground(terrain);
        make_lander(terrain);
        make_leg(0, -1);
        make_leg(1, +1);
        world.SetContactListener(this);
    }

    void make_ground(const Terrain& terrain) {
        b2BodyDef definition;
        b2Body* ground = world.CreateBody(&definition);
        b2EdgeShape edge;
        b2FixtureDef fixture;
        fixture.shape = &edge;
        edge.Set(b2Vec2(0, 0), vector(WIDTH, 0));
        ground->CreateFixture(&fixture);
        fixture.friction = 0.1f;
        for (int i = 0; i + 1 < CORNERS; i++) {
            const double *a = terrain.ground[i], *b = terrain.ground[i + 1];
            edge.Set(vector(a[0], a[1]), vector(b[0], b[1]));
            ground->CreateFixture(&fixture);
        }
    }

    void make_lander(const Terrain& terrain) {
        b2BodyDef definition;
        definition.type = b2_dynamicBody;
        definition.position = vector(WIDTH / 2, HEIGHT);
        lander = world.CreateBody(&definition);
        b2Vec2 corners[6];
        for (int i = 0; i < 6; i++) corners[i] = vector(OUTLINE[i][0] / SCALE, OUTLINE[i][1] / SCALE);
        b2PolygonShape shape;
        shape.Set(corners, 6);
        b2FixtureDef fixture;
        fixture.shape = &shape;
        fixture.density = 5.0f;
        fixture.friction = 0.1f;
        fixture.filter.categoryBits = 0x0010;
        fixture.filter.maskBits = 0x001;
        lander->CreateFixture(&fixture);
        lander->ApplyForceToCenter(vector(terrain.force[0], terrain.force[1]), true);
    }

    void make_leg(int place, int side) {
        b2BodyDef definition;
        definition.type = b2_dynamicBody;
        definition.position = vector(WIDTH / 2 - side * LEG_AWAY / SCALE, HEIGHT);
        definition.angle = single(side * 0.05);
        b2Body* leg = legs[place] = world.CreateBody(&definition);
        b2PolygonShape shape;
        shape.SetAsBox(single(LEG_WIDTH / SCALE), single(LEG_HEIGHT / SCALE));
        b2FixtureDef fixture;
        fixture.shape = &shape;
        fixture.density = 1.0f;
        fixture.filter.categoryBits = 0x0020;
        fixture.filter.maskBits = 0x001;
        leg->CreateFixture(&fixture);
        b2RevoluteJointDef joint;
        joint.bodyA = lander;
        joint.bodyB = leg;
        joint.localAnchorA = b2Vec2(0, 0);
        joint.localAnchorB = vector(side * LEG_AWAY / SCALE, LEG_DOWN / SCALE);
        // The Python binding sets it from the bodies as they are.
        joint.referenceAngle = single(double(leg->GetAngle()) - double(lander->GetAngle()));
        joint.enableMotor = joint.enableLimit = true;
        joint.maxMotorTorque = 40.0f;
        joint.motorSpeed = single(0.3 * side);
        joint.lowerAngle = single(side == -1 ? 0.9 - 0.5 : -0.9);
        joint.upperAngle = single(side == -1 ? 0.9 : -0.9 + 0.5);
        world.CreateJoint(&joint);
    }

    void BeginContact(b2Contact* contact) override { touch(contact, true); }
    void EndContact(b2Contact* contact) override { touch(contact, false); }

    void touch(b2Contact* contact, bool begins) {
        const b2Body* bodies[] = {contact->GetFixtureA()->GetBody(), contact->GetFixtureB()->GetBody()};
        for (const b2Body* body : bodies) {
            if (begins && body == lander) crashed = true;
            for (int i = 0; i < 2; i++)
                if (body == legs[i]) touching[i] = begins;
        }
    }

    void step() { world.Step(single(1.0 / RATE), 6 * 30, 2 * 30); }

    void fire(int engine, double ahead, double aside) {
        double angle = lander->GetAngle(), sine = std::sin(angle), cosine = std::cos(angle), power;
        if (engine == 2) {
            power = MAIN_POWER;
            ahead = MAIN_DOWN / SCALE + 2 * ahead;
        } else {
            power = SIDE_POWER;
            aside = 3 * aside + (engine - 2) * SIDE_AWAY / SCALE;
        }
        double x = sine * ahead - cosine * aside, y = -cosine * ahead - sine * aside;
        double place_x = lander->GetPosition().x + x, place_y = lander->GetPosition().y + y;
        if (engine != 2) {
            place_x = place_x - sine * 17 / SCALE;
            place_y = place_y + cosine * SIDE_HEIGHT / SCALE;
        }
        lander->ApplyLinearImpulse(vector(-x * power, -y * power), vector(place_x, place_y), true);
    }

    void observe(double* state) const {
        const double half_width = WIDTH / 2, half_height = HEIGHT / 2, pad = HEIGHT / 4;
        const b2Vec2 position = lander->GetPosition(), velocity = lander->GetLinearVelocity();
        state[0] = (position.x - half_width) / half_width;
        state[1] = (position.y - (pad + LEG_DOWN / SCALE)) / half_height;
        state[2] = velocity.x * half_width / RATE;
        state[3] = velocity.y * half_height / RATE;
        state[4] = lander->GetAngle();
        state[5] = 20.0 * lander->GetAngularVelocity() / RATE;
        state[6] = touching[0];
        state[7] = touching[1];
    }
};

// Of equal values the first, as in Python.
double larger(double a, double b) { return b > a ? b : a; }
double smaller(double a, double b) { return b < a ? b : a; }

int action(const double* w, const double* s) {
    double turn, lift;
    if (s[6] || s[7]) {
        turn = w[8];
        lift = -s[3] * w[9];
    } else {
        double target = smaller(larger(w[0] * s[0] + w[1] * s[2], -w[2]), w[2]);
        turn = (target - s[4]) * w[4] - s[5] * w[5];
        lift = (w[3] * std::fabs(s[0]) - s[1]) * w[6] - s[3] * w[7];
    }
    if (lift > std::fabs(turn) && lift > w[10]) return 2;
    if (turn < -w[11]) return 3;
    return turn > w[11] ? 1 : 0;
}

double shaping(const double* s) {
    double distance = std::sqrt(s[0] * s[0] + s[1] * s[1]), speed = std::sqrt(s[2] * s[2] + s[3] * s[3]);
    return -100 * distance - 100 * speed - 100 * std::fabs(s[4]) + 10 * s[6] + 10 * s[7];
}

}  // namespace

double fly(const double* weights, const Terrain& terrain) {
    Craft craft(terrain);
    double state[8], reward = 0.0;
    craft.step();
    craft.observe(state);
    double now = shaping(state);
    for (int n = 0; n < STEPS; n++) {
        for (double& value : state) value = single(value);
        int engine = action(weights, state);
        if (engine) craft.fire(engine, terrain.noise[n][0], terrain.noise[n][1]);
        craft.step();
        craft.observe(state);
        if (!craft.lander->IsAwake()) return reward + 100.0;
        if (craft.crashed || std::fabs(state[0]) >= 1.0) return reward - 100.0;
        double before = now;
        now = shaping(state);
        reward += now - before - FUEL[engine];
    }
    return reward;
}
