/* Samples of a generator's bundle, and answers of a predictor's, from C. Link with libcompgen, or open it.

   Each function returns a code; what is no COMPGEN_OK comes with a message of one line, in UTF-8, that ends in 0 and is cut
   to the room there is. A model may be used by one thread at a time; two models by two threads. A first call that
   needs ONNX Runtime opens it, for all models: COMPGEN_ONNXRUNTIME names its shared library. */
#ifndef COMPGEN_H
#define COMPGEN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define COMPGEN_API __attribute__((visibility("default")))
#else
#define COMPGEN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum compgen_code {
  COMPGEN_OK = 0,
  COMPGEN_ERROR = 2,     /* the caller can mend it: the bundle, or an argument */
  COMPGEN_NO_MEMORY = 3, /* try a smaller batch or fewer threads */
  COMPGEN_FAILED = 4     /* the system: no further threads, for instance */
};

/* An opened bundle. */
typedef struct compgen_model compgen_model;

/* Where a message goes; its room is `size` bytes. It may be NULL. */
typedef struct compgen_message {
  char* text;
  size_t size;
} compgen_message;

/* Takes a line, as JSON without a line end, which is of this call alone; what is not 0 ends the work, without an error. */
typedef int (*compgen_take)(void* data, const char* line, size_t length);

/* Sets `model`, or NULL if there is an error. */
COMPGEN_API int compgen_open(const char* folder, compgen_model** model, const compgen_message* message);

/* How samples are drawn. Set all that is not used to 0. */
typedef struct compgen_draws {
  uint64_t seed;
  int64_t start, count;     /* addresses start .. start + count - 1 */
  const double* temperature; /* two, of source and target halves; NULL: the bundle's */
  int64_t batch;            /* rows that a thread decodes at a time; 0: the usual number */
  int workers;              /* threads; 0: as many as there are processors that this process may use */
} compgen_draws;

/* Draws, and hands on each well-formed sample in order of address: the lines of `cgen sample --draws` to .jsonl. */
COMPGEN_API int compgen_draw(compgen_model* model, const compgen_draws* draws, compgen_take take, void* data,
                             const compgen_message* message);

/* How sources are answered. Set all that is not used to 0. */
typedef struct compgen_questions {
  const char* sources; /* tokens separated by spaces or TABs, a source a line of 0 to 2^20 bytes, in UTF-8 */
  int64_t best;        /* answers of each; 0: 1 */
  int64_t beam;        /* width of beam search; 0: `best`; 1 is greedy */
  int64_t batch;       /* as in compgen_draws */
  int workers;
} compgen_questions;

/* Answers sources in their order, the best answer first: the lines of the program's --input to .jsonl. A source without
   tokens has one line, without a rank and a log_prob, so that answers can be counted with what was asked. */
COMPGEN_API int compgen_predict(compgen_model* model, const compgen_questions* questions, compgen_take take, void* data,
                                const compgen_message* message);

/* Frees a model. NULL is none. */
COMPGEN_API void compgen_close(compgen_model* model);

#ifdef __cplusplus
}
#endif

#endif
