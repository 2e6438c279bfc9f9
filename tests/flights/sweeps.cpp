// The sweeps of b2RevoluteJoint and b2ContactSolver, for sixteen landers at once. Every lane does the
// operations of Box2D in the order of Box2D, so that it gets the same bits; where Box2D branches,
// both branches are computed and each lane takes its own.
#include "sweeps.h"

#define INLINE static inline __attribute__((always_inline))

INLINE Lanes least(Lanes a, Lanes b) { return a < b ? a : b; }
INLINE Lanes largest(Lanes a, Lanes b) { return a > b ? a : b; }
INLINE Lanes clamp(Lanes a, Lanes low, Lanes high) { return largest(low, least(a, high)); }

// What b2Mat33::Solve33 and Solve22 compute from the matrix alone, anew at every sweep.
struct Solver {
    Lanes cross_x, cross_y, cross_z, inverse33, inverse22;
};

INLINE Solver prepare(const Hinge& h) {
    const Lanes zero = {}, one = zero + 1.0f;
    Solver s;
    s.cross_x = h.k[1][1] * h.k[2][2] - h.k[1][2] * h.k[2][1];
    s.cross_y = h.k[1][2] * h.k[2][0] - h.k[1][0] * h.k[2][2];
    s.cross_z = h.k[1][0] * h.k[2][1] - h.k[1][1] * h.k[2][0];
    Lanes d = h.k[0][0] * s.cross_x + h.k[0][1] * s.cross_y + h.k[0][2] * s.cross_z;
    s.inverse33 = d != zero ? one / d : d;
    d = h.k[0][0] * h.k[1][1] - h.k[1][0] * h.k[0][1];
    s.inverse22 = d != zero ? one / d : d;
    return s;
}

INLINE void solve_hinge(Hinge& h, const Solver& s, Lanes& ax, Lanes& ay, Lanes& aw, Lanes& bx,
                        Lanes& by, Lanes& bw) {
    const Lanes zero = {};
    Mask active = h.limit != zero + INACTIVE, upper = h.limit == zero + UPPER;
    // The motor.
    Lanes impulse = -h.motor_mass * (bw - aw - h.speed), old = h.motor;
    h.motor = clamp(h.motor + impulse, -h.most, h.most);
    impulse = h.motor - old;
    aw = aw - h.inertia_a * impulse;
    bw = bw + h.inertia_b * impulse;
    // The point and, where it is active, the limit.
    Lanes dx = bx + -bw * h.rb_y - ax - -aw * h.ra_y;
    Lanes dy = by + bw * h.rb_x - ay - aw * h.ra_x;
    Lanes dz = bw - aw;
    Lanes x = -(s.inverse33 * (dx * s.cross_x + dy * s.cross_y + dz * s.cross_z));
    Lanes y = -(s.inverse33 * (h.k[0][0] * (dy * h.k[2][2] - dz * h.k[2][1]) +
                               h.k[0][1] * (dz * h.k[2][0] - dx * h.k[2][2]) +
                               h.k[0][2] * (dx * h.k[2][1] - dy * h.k[2][0])));
    Lanes z = -(s.inverse33 * (h.k[0][0] * (h.k[1][1] * dz - h.k[1][2] * dy) +
                               h.k[0][1] * (h.k[1][2] * dx - h.k[1][0] * dz) +
                               h.k[0][2] * (h.k[1][0] * dy - h.k[1][1] * dx)));
    Lanes sum = h.z + z;
    // Where the limit would pull it lets go; there, and where there is none, only the point is held.
    Mask released = active & (upper ? (sum > zero) : (sum < zero));
    Lanes rx = -dx, ry = -dy;
    rx = released ? rx + h.z * h.k[2][0] : rx;
    ry = released ? ry + h.z * h.k[2][1] : ry;
    Mask point = released | ~active;
    x = point ? s.inverse22 * (h.k[1][1] * rx - h.k[1][0] * ry) : x;
    y = point ? s.inverse22 * (h.k[0][0] * ry - h.k[0][1] * rx) : y;
    z = released ? -h.z : z;
    h.x = h.x + x;
    h.y = h.y + y;
    h.z = active ? (released ? zero : sum) : h.z;
    Lanes torque_a = h.ra_x * y - h.ra_y * x, torque_b = h.rb_x * y - h.rb_y * x;
    torque_a = active ? torque_a + z : torque_a;
    torque_b = active ? torque_b + z : torque_b;
    ax = ax - h.mass_a * x;
    ay = ay - h.mass_a * y;
    aw = aw - h.inertia_a * torque_a;
    bx = bx + h.mass_b * x;
    by = by + h.mass_b * y;
    bw = bw + h.inertia_b * torque_b;
}

INLINE Lanes choose(const Lanes* bodies, Mask second, Mask third) {
    return third ? bodies[2] : second ? bodies[1] : bodies[0];
}

INLINE void solve_contact(Contact& c, Lanes* all_x, Lanes* all_y, Lanes* all_w) {
    const Lanes zero = {};
    Mask here = c.points != zero, two = c.points == zero + 2.0f, one = here & ~two;
    Mask second = c.body == zero + 1.0f, third = c.body == zero + 2.0f;
    Lanes vx = choose(all_x, second, third), vy = choose(all_y, second, third);
    Lanes w = choose(all_w, second, third);
    Lanes nx = c.normal_x, ny = c.normal_y, tx = 1.0f * ny, ty = -1.0f * nx;
    // Friction.
    for (int i = 0; i < POINTS; i++) {
        Point& p = c.point[i];
        Mask on = i ? two : here;
        Lanes dx = vx + -w * p.r_y, dy = vy + w * p.r_x;
        Lanes lambda = p.tangent_mass * -(dx * tx + dy * ty - c.speed);
        Lanes most = c.friction * p.normal;
        Lanes next = clamp(p.tangent + lambda, -most, most);
        lambda = next - p.tangent;
        p.tangent = on ? next : p.tangent;
        Lanes x = lambda * tx, y = lambda * ty;
        vx = on ? vx + c.mass * x : vx;
        vy = on ? vy + c.mass * y : vy;
        w = on ? w + c.inertia * (p.r_x * y - p.r_y * x) : w;
    }
    Point &p = c.point[0], &q = c.point[1];
    Lanes p_speed = (vx + -w * p.r_y) * nx + (vy + w * p.r_x) * ny;
    Lanes q_speed = (vx + -w * q.r_y) * nx + (vy + w * q.r_x) * ny;
    // One point.
    Lanes next = largest(p.normal + -p.normal_mass * (p_speed - p.bias), zero);
    Lanes lambda = next - p.normal;
    Lanes x = lambda * nx, y = lambda * ny;
    Lanes one_vx = vx + c.mass * x, one_vy = vy + c.mass * y;
    Lanes one_w = w + c.inertia * (p.r_x * y - p.r_y * x);
    // Two points: of the four ways in which they can press, the first that is consistent.
    Lanes bx = p_speed - p.bias, by = q_speed - q.bias;
    bx = bx - (c.k_xx * p.normal + c.k_yx * q.normal);
    by = by - (c.k_xy * p.normal + c.k_yy * q.normal);
    Lanes both_x = -(c.inverse_xx * bx + c.inverse_yx * by);
    Lanes both_y = -(c.inverse_xy * bx + c.inverse_yy * by);
    Mask both = (both_x >= zero) & (both_y >= zero);
    Lanes first_x = -p.normal_mass * bx;
    Mask first = (first_x >= zero) & (c.k_xy * first_x + by >= zero);
    Lanes last_y = -q.normal_mass * by;
    Mask last = (last_y >= zero) & (c.k_yx * last_y + bx >= zero);
    Mask none = (bx >= zero) & (by >= zero);
    Mask solved = two & (both | first | last | none);
    Lanes next_x = both ? both_x : first ? first_x : zero;
    Lanes next_y = both ? both_y : first ? zero : last ? last_y : zero;
    Lanes ex = next_x - p.normal, ey = next_y - q.normal;
    Lanes px = ex * nx, py = ex * ny, qx = ey * nx, qy = ey * ny;
    Lanes two_vx = vx + c.mass * (px + qx), two_vy = vy + c.mass * (py + qy);
    Lanes two_w = w + c.inertia * ((p.r_x * py - p.r_y * px) + (q.r_x * qy - q.r_y * qx));
    p.normal = one ? next : solved ? next_x : p.normal;
    q.normal = solved ? next_y : q.normal;
    vx = one ? one_vx : solved ? two_vx : vx;
    vy = one ? one_vy : solved ? two_vy : vy;
    w = one ? one_w : solved ? two_w : w;
    Mask its[3] = {here & ~second & ~third, here & second, here & third};
    for (int i = 0; i < 3; i++) {
        all_x[i] = its[i] ? vx : all_x[i];
        all_y[i] = its[i] ? vy : all_y[i];
        all_w[i] = its[i] ? w : all_w[i];
    }
}

void sweep(Group& group, int contacts, int number) {
    // Copies, which the compiler can keep in registers.
    Hinge left = group.hinge[0], right = group.hinge[1];
    const Solver of_left = prepare(left), of_right = prepare(right);
    Lanes x[3], y[3], w[3];
    for (int i = 0; i < 3; i++) {
        x[i] = group.velocity_x[i], y[i] = group.velocity_y[i], w[i] = group.spin[i];
    }
    for (int i = 0; i < number; i++) {
        solve_hinge(left, of_left, x[0], y[0], w[0], x[1], y[1], w[1]);
        solve_hinge(right, of_right, x[0], y[0], w[0], x[2], y[2], w[2]);
        for (int k = 0; k < contacts; k++) solve_contact(group.contact[k], x, y, w);
    }
    for (int i = 0; i < 3; i++) {
        group.velocity_x[i] = x[i], group.velocity_y[i] = y[i], group.spin[i] = w[i];
    }
    group.hinge[0] = left;
    group.hinge[1] = right;
}
