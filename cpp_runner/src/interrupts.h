// Ctrl-C and SIGTERM are handled between two draws, so that what was drawn can be saved.
#pragma once

namespace compgen {

// From now on a first signal asks the work to stop, and one that comes more than a second later ends the program; see
// compgen/interrupts.py.
void catch_signals();

// Whether a signal has come.
bool interrupted();

// As shells count: 130 for Ctrl-C, 143 for SIGTERM.
int interrupted_code();

// Thrown where a signal ends what had nothing to save yet.
struct Interrupted {};

}  // namespace compgen
