// Sixteen landers side by side: what a sweep over the velocity constraints of Box2D reads and writes.
#pragma once

const int LANES = 16, CONTACTS = 6, POINTS = 2;
typedef float Lanes __attribute__((vector_size(4 * LANES)));
typedef int Mask __attribute__((vector_size(4 * LANES)));

// A leg's revolute joint with motor and limits; body A is the lander, body B the leg.
struct Hinge {
    Lanes mass_a, inertia_a, mass_b, inertia_b;  // all inverse
    Lanes ra_x, ra_y, rb_x, rb_y;
    Lanes motor_mass, most, speed;
    Lanes k[3][3];  // the matrix of the constraint, by columns
    Lanes limit;    // INACTIVE, LOWER or UPPER
    Lanes x, y, z, motor;  // accumulated impulses
};
const float INACTIVE = 0, LOWER = 1, UPPER = 2;

struct Point {
    Lanes r_x, r_y, normal_mass, tangent_mass, bias;
    Lanes normal, tangent;  // accumulated impulses
};

// A contact of a moving body with the ground.
struct Contact {
    Lanes body;    // its place among the bodies
    Lanes points;  // one or two; none in lanes without this contact
    Lanes mass, inertia;  // inverse
    Lanes normal_x, normal_y, friction, speed;
    Lanes k_xx, k_xy, k_yx, k_yy, inverse_xx, inverse_xy, inverse_yx, inverse_yy;  // by columns
    Point point[POINTS];
};

// The bodies are the lander, the leg of the first hinge and that of the second.
struct Group {
    Hinge hinge[2];
    Lanes velocity_x[3], velocity_y[3], spin[3];
    Contact contact[CONTACTS];
};

// Sweep `number` times over both hinges and the first `contacts` contacts.
void sweep(Group& group, int contacts, int number);
