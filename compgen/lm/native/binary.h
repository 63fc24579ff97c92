// Binary models of KenLM, checked before KenLM opens them.
#pragma once

namespace compgen {

// KenLM believes what a binary model says: how many n-grams there are, which word a cell of a table stands for, where the
// n-grams that begin with others are. In a damaged one it would read where no table is, or search without end. All of
// that is looked at here; wrong probabilities are not seen. A file that is not binary is not looked at.
//
// Throws an exception with the reason, also of KenLM's.
void check_binary(const char* path);

}  // namespace compgen
