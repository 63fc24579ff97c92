// Models of KenLM, checked before KenLM opens them.
#pragma once

namespace compgen {

// KenLM believes what a binary model says: how many n-grams there are, which word a cell of a table stands for, where the
// n-grams that begin with others are. In a damaged one it would read where no table is, or search without end. All of
// that is looked at here; wrong probabilities are not seen. It makes room for as many n-grams as the head of a text (ARPA)
// says, which can be no more than the text has bytes.
//
// Throws an exception with the reason, also of KenLM's.
void check_model(const char* path);

}  // namespace compgen
