// Code from here to end_instructions.h is compiled once for each instruction set, in a namespace of its name
// (INSTRUCTIONS), and uses it: INSTRUCTIONS_TARGET is the compiler's name for it, VECTOR_BYTES the size of its
// registers. Other headers must be included before: the linker keeps one copy of what they define inline, which must
// run on any processor.
//
// There is no include guard, since each such piece of code includes this.
#if defined(INSTRUCTIONS_TARGET)
#pragma GCC push_options
#define COMPGEN_PRAGMA(text) _Pragma(#text)
#define COMPGEN_TARGET(set) COMPGEN_PRAGMA(GCC target(set))
COMPGEN_TARGET(INSTRUCTIONS_TARGET)
#undef COMPGEN_TARGET
#undef COMPGEN_PRAGMA
#endif
