// Many flights at once. Each is a fiber, a stack of its own, that runs until its world comes to the
// sweeps over velocity constraints; there it waits until sixteen worlds have come, which are swept
// side by side. All else is Box2D as it is. For x86-64 and the calling convention of Linux.
#include <Box2D/Box2D.h>
#include <Box2D/Dynamics/Contacts/b2ContactSolver.h>
#include <Box2D/Dynamics/b2Island.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "lander.h"
#include "sweeps.h"

// In b2Island.cpp as it is patched: called instead of the sweeps; false leaves them to Box2D.
extern bool (*b2_sweeps)(b2Island& island, const b2SolverData& data, b2ContactSolver& solver);

// Go on with the stack `to` and leave where to come back to in `from`.
extern "C" void switch_stack(void** from, void* to);
asm(R"(
.text
.globl switch_stack
.type switch_stack, @function
switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size switch_stack, .-switch_stack
)");

namespace {

const size_t STACK = 1 << 19;
const int FIBERS = 96;  // enough that sixteen worlds of equally many contacts are soon found

struct Fiber {
    void* stack;
    const double* weights;
    const Terrain* terrain;
    double* reward;
    bool done;
    // While it waits:
    b2RevoluteJoint* hinges[2];
    int bodies[3], number;
    float step;
    b2Velocity* velocities;
    b2ContactSolver* solver;
};

void* scheduler;
Fiber* flying;
std::vector<Fiber*> waiting[CONTACTS + 1];  // by the number of contacts

void* memory(size_t size) {
    void* found = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) std::abort();
    return found;
}

// Whether `sweep` does what Box2D would do with this island.
bool is_plain(const b2Island& island, const b2SolverData& data, const b2ContactSolver& solver, Fiber& f) {
    if (island.m_jointCount != 2 || solver.m_count > CONTACTS) return false;
    for (int i = 0; i < 2; i++) {
        if (island.m_joints[i]->GetType() != e_revoluteJoint) return false;
        const b2RevoluteJoint* hinge = f.hinges[i] = static_cast<b2RevoluteJoint*>(island.m_joints[i]);
        if (!hinge->m_enableMotor || !hinge->m_enableLimit) return false;
        if (hinge->m_limitState == e_equalLimits) return false;
        if (hinge->m_indexA != f.hinges[0]->m_indexA) return false;
        f.bodies[1 + i] = hinge->m_indexB;
    }
    f.bodies[0] = f.hinges[0]->m_indexA;
    for (int k = 0; k < solver.m_count; k++) {
        const b2ContactVelocityConstraint& contact = solver.m_velocityConstraints[k];
        const b2Velocity& ground = data.velocities[contact.indexA];
        if (contact.invMassA != 0 || contact.invIA != 0) return false;
        if (ground.v.x != 0 || ground.v.y != 0 || ground.w != 0) return false;
        if (std::find(f.bodies, f.bodies + 3, contact.indexB) == f.bodies + 3) return false;
        if (contact.pointCount < 1 || contact.pointCount > POINTS) return false;
    }
    return true;
}

bool wait_for_sweeps(b2Island& island, const b2SolverData& data, b2ContactSolver& solver) {
    Fiber* f = flying;
    if (!is_plain(island, data, solver, *f)) return false;
    f->velocities = data.velocities;
    f->solver = &solver;
    f->step = data.step.dt;
    f->number = data.step.velocityIterations;
    waiting[solver.m_count].push_back(f);
    switch_stack(&f->stack, scheduler);
    return true;
}

void load_hinge(Hinge& h, int l, const b2RevoluteJoint& joint, float step) {
    h.mass_a[l] = joint.m_invMassA, h.inertia_a[l] = joint.m_invIA;
    h.mass_b[l] = joint.m_invMassB, h.inertia_b[l] = joint.m_invIB;
    h.ra_x[l] = joint.m_rA.x, h.ra_y[l] = joint.m_rA.y;
    h.rb_x[l] = joint.m_rB.x, h.rb_y[l] = joint.m_rB.y;
    h.motor_mass[l] = joint.m_motorMass, h.speed[l] = joint.m_motorSpeed;
    h.most[l] = step * joint.m_maxMotorTorque;
    const b2Vec3* columns[] = {&joint.m_mass.ex, &joint.m_mass.ey, &joint.m_mass.ez};
    for (int i = 0; i < 3; i++) {
        h.k[i][0][l] = columns[i]->x, h.k[i][1][l] = columns[i]->y, h.k[i][2][l] = columns[i]->z;
    }
    const b2LimitState state = joint.m_limitState;
    h.limit[l] = state == e_inactiveLimit ? INACTIVE : state == e_atLowerLimit ? LOWER : UPPER;
    h.x[l] = joint.m_impulse.x, h.y[l] = joint.m_impulse.y, h.z[l] = joint.m_impulse.z;
    h.motor[l] = joint.m_motorImpulse;
}

void load_contact(Contact& c, int l, const b2ContactVelocityConstraint& from, const int* bodies) {
    c.body[l] = std::find(bodies, bodies + 3, from.indexB) - bodies;
    c.points[l] = from.pointCount;
    c.mass[l] = from.invMassB, c.inertia[l] = from.invIB;
    c.normal_x[l] = from.normal.x, c.normal_y[l] = from.normal.y;
    c.friction[l] = from.friction, c.speed[l] = from.tangentSpeed;
    c.k_xx[l] = from.K.ex.x, c.k_xy[l] = from.K.ex.y;
    c.k_yx[l] = from.K.ey.x, c.k_yy[l] = from.K.ey.y;
    c.inverse_xx[l] = from.normalMass.ex.x, c.inverse_xy[l] = from.normalMass.ex.y;
    c.inverse_yx[l] = from.normalMass.ey.x, c.inverse_yy[l] = from.normalMass.ey.y;
    for (int i = 0; i < from.pointCount; i++) {
        const b2VelocityConstraintPoint& point = from.points[i];
        Point& p = c.point[i];
        p.r_x[l] = point.rB.x, p.r_y[l] = point.rB.y;
        p.normal_mass[l] = point.normalMass, p.tangent_mass[l] = point.tangentMass;
        p.bias[l] = point.velocityBias;
        p.normal[l] = point.normalImpulse, p.tangent[l] = point.tangentImpulse;
    }
}

void load(Group& group, int l, const Fiber& f) {
    for (int i = 0; i < 2; i++) load_hinge(group.hinge[i], l, *f.hinges[i], f.step);
    for (int i = 0; i < 3; i++) {
        const b2Velocity& velocity = f.velocities[f.bodies[i]];
        group.velocity_x[i][l] = velocity.v.x, group.velocity_y[i][l] = velocity.v.y;
        group.spin[i][l] = velocity.w;
    }
    for (int k = 0; k < CONTACTS; k++) {
        if (k < f.solver->m_count) {
            load_contact(group.contact[k], l, f.solver->m_velocityConstraints[k], f.bodies);
        } else {
            group.contact[k].points[l] = 0;
        }
    }
}

void store(const Group& group, int l, const Fiber& f) {
    for (int i = 0; i < 2; i++) {
        const Hinge& h = group.hinge[i];
        f.hinges[i]->m_impulse.Set(h.x[l], h.y[l], h.z[l]);
        f.hinges[i]->m_motorImpulse = h.motor[l];
    }
    for (int i = 0; i < 3; i++) {
        b2Velocity& velocity = f.velocities[f.bodies[i]];
        velocity.v.Set(group.velocity_x[i][l], group.velocity_y[i][l]);
        velocity.w = group.spin[i][l];
    }
    for (int k = 0; k < f.solver->m_count; k++) {
        b2ContactVelocityConstraint& contact = f.solver->m_velocityConstraints[k];
        for (int i = 0; i < contact.pointCount; i++) {
            contact.points[i].normalImpulse = group.contact[k].point[i].normal[l];
            contact.points[i].tangentImpulse = group.contact[k].point[i].tangent[l];
        }
    }
}

// Sweep up to sixteen of the waiting worlds: of the number of contacts that most have and, where these
// are too few, of fewer. Returns them.
std::vector<Fiber*> sweep_some() {
    static Group* group = static_cast<Group*>(memory(sizeof(Group)));
    int most = 0;
    auto lanes = [](int k) { return std::min(waiting[k].size(), size_t(LANES)); };
    for (int k = 1; k <= CONTACTS; k++)
        if (lanes(k) > lanes(most)) most = k;
    std::vector<Fiber*> chosen;
    for (int k = most; k >= 0; k--) {
        while (chosen.size() < size_t(LANES) && !waiting[k].empty()) {
            chosen.push_back(waiting[k].back());
            waiting[k].pop_back();
        }
    }
    // Lanes that are left over repeat the first.
    for (size_t l = 0; l < size_t(LANES); l++) load(*group, l, *chosen[l < chosen.size() ? l : 0]);
    sweep(*group, most, chosen[0]->number);
    for (size_t l = 0; l < chosen.size(); l++) store(*group, l, *chosen[l]);
    return chosen;
}

void run_fiber() {
    for (;;) {
        Fiber* f = flying;
        *f->reward = fly(f->weights, *f->terrain);
        f->done = true;
        switch_stack(&f->stack, scheduler);
    }
}

std::vector<Fiber*> make_fibers() {
    std::vector<Fiber*> fibers;
    for (int i = 0; i < FIBERS; i++) {
        Fiber* f = new Fiber();
        // As if it had called switch_stack from run_fiber: a return address and six registers.
        void** top = reinterpret_cast<void**>(static_cast<char*>(memory(STACK)) + STACK - 64);
        *--top = nullptr;
        *--top = reinterpret_cast<void*>(run_fiber);
        for (int r = 0; r < 6; r++) *--top = nullptr;
        f->stack = top;
        fibers.push_back(f);
    }
    return fibers;
}

}  // namespace

extern "C" long terrain_bytes() { return sizeof(Terrain); }

// Rewards, row by row, of every point on every terrain. Not for several threads at once.
extern "C" void fly_all(const double* weights, const Terrain* terrains, long points, long m, double* rewards) {
    static std::vector<Fiber*> fibers = make_fibers();
    b2_sweeps = wait_for_sweeps;
    std::vector<Fiber*> idle(fibers), ready;
    long next = 0, total = points * m, ended = 0;
    while (ended < total) {
        if (ready.empty() && (next == total || idle.empty())) ready = sweep_some();
        if (ready.empty()) {
            ready.push_back(idle.back());
            idle.pop_back();
            Fiber* f = ready.back();
            f->weights = weights + 12 * (next / m), f->terrain = terrains + next % m;
            f->reward = rewards + next, f->done = false;
            next++;
        }
        flying = ready.back();
        ready.pop_back();
        switch_stack(&scheduler, flying->stack);
        if (flying->done) {
            idle.push_back(flying);
            ended++;
        }
    }
}
