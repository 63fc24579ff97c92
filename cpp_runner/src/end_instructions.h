// See begin_instructions.h.
#if defined(INSTRUCTIONS_TARGET)
#pragma GCC pop_options
#endif
