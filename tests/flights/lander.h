// Flights of the lunar lander, see cbo_suite/problems/lunar_lander/flight.py, whose bits these have.
#pragma once

const int CORNERS = 11, STEPS = 1000;

// What the seed of a terrain fixes.
struct Terrain {
    double ground[CORNERS][2];
    double force[2];         // on the lander, in the first step
    double noise[STEPS][2];  // of the engines, ahead and aside
};

// The reward of one flight with twelve weights.
double fly(const double* weights, const Terrain& terrain);
