// Code from here to end_instructions.h is compiled once for each instruction set, in a namespace of its name
// (INSTRUCTIONS), and uses it: INSTRUCTIONS_TARGET is the compiler's words for it, VECTOR_BYTES its registers' size. All other
// headers come before: the linker keeps one copy of what they define inline, so that must run on any processor.
//
// No include guard: each stretch of code begins so.
#if defined(INSTRUCTIONS_TARGET)
#pragma GCC push_options
#define COMPGEN_PRAGMA(text) _Pragma(#text)
#define COMPGEN_TARGET(set) COMPGEN_PRAGMA(GCC target(set))
COMPGEN_TARGET(INSTRUCTIONS_TARGET)
#undef COMPGEN_TARGET
#undef COMPGEN_PRAGMA
#endif
