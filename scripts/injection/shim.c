// Counts the calls of the system that concern one folder, and fails one of them, or kills the process there.
//
// LD_PRELOAD names this library and FAULTS_STATE a file that holds `struct state`, which all processes of a run map:
// scripts/injection/shim.py writes what is asked and reads the counts. A call concerns the folder if its path, or the
// path of its descriptor, is the folder or below it; reading goes by a kind of its own. With `kind` ANY, calls are
// counted together. A call that fails is not made. A write() or fwrite() that is killed is made by half: the file is torn.
//
// What glibc calls inside itself does not come by here. So calls that write to a FILE count as writes, whether or not
// they empty its buffer, and what reads from one does not count. Memory is counted in C++ programs that are started
// with FAULTS_MEMORY: allocations by the program itself, not by its libraries. With `leap`, each look of a C++ program at
// its steady clock finds it so many seconds later, so that what is done every few seconds is done as often as it can be.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// shim.py has the same names in the same order.
enum kind { OPEN, READ, WRITE, FSYNC, TRUNCATE, RENAME, LINK, UNLINK, MKDIR, CHMOD, MMAP, MALLOC, KINDS };
enum mode { OFF, COUNT, FAIL, FAIL_FROM, KILL };
#define ANY (-1)  // but READ and MALLOC, which change no file

struct state {
  int mode, kind, error, unused;
  long at;    // which call fails, from 1
  long leap;  // seconds
  atomic_long hits;
  atomic_long total;  // of all kinds that ANY is
  atomic_long counts[KINDS];
  atomic_long looks;  // at the clock
  char folder[PATH_MAX];
};

static struct state* state;
static int memory;

__attribute__((constructor)) static void attach(void) {
  const char* name = getenv("FAULTS_STATE");
  if (!name) return;
  const int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* found = (void*)syscall(SYS_mmap, NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
  syscall(SYS_close, file);
  if (found == MAP_FAILED) return;
  state = found;
  memory = getenv("FAULTS_MEMORY") != NULL;
}

static int below(const char* path) {
  const size_t size = strlen(state->folder);
  return strncmp(path, state->folder, size) == 0 && (path[size] == 0 || path[size] == '/');
}

static int fd_concerns(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return below(path);
}

static int path_concerns(int folder, const char* path) {
  if (!path) return 0;
  if (path[0] == '/') return below(path);
  if (folder != AT_FDCWD) return fd_concerns(folder);
  char here[PATH_MAX];
  return getcwd(here, sizeof here) && below(here);
}

enum verdict { PASS, FAILS, DIES };

// Count a call of a kind, and say what becomes of it.
static enum verdict judge(enum kind kind) {
  const long own = atomic_fetch_add(&state->counts[kind], 1) + 1;
  const int changes = kind != READ && kind != MALLOC;
  const long all = !changes ? 0 : atomic_fetch_add(&state->total, 1) + 1;
  if (state->mode == COUNT) return PASS;
  if (state->kind == ANY ? !changes : state->kind != (int)kind) return PASS;
  const long number = state->kind == ANY ? all : own;
  if (number < state->at || (number > state->at && state->mode != FAIL_FROM)) return PASS;
  atomic_fetch_add(&state->hits, 1);
  return state->mode == KILL ? DIES : FAILS;
}

static void die(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

// Nonzero if the call must fail, with errno set.
static int fails(enum kind kind, int concerns) {
  if (!concerns) return 0;
  const enum verdict found = judge(kind);
  if (found == DIES) die();
  if (found == FAILS) errno = state->error;
  return found == FAILS;
}

static int watching(void) { return state && state->mode != OFF; }

#define NEXT(name) \
  static __typeof__(&name) next; \
  if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define BY_PATH(kind, folder, path) (watching() && fails(kind, path_concerns(folder, path)))
#define BY_FD(kind, fd) (watching() && fails(kind, fd_concerns(fd)))

static mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

#define OPENS(name) \
  int name(const char* path, int flags, ...) { \
    NEXT(name); \
    va_list more; \
    va_start(more, flags); \
    const mode_t mode = mode_of(flags, more); \
    va_end(more); \
    return BY_PATH(OPEN, AT_FDCWD, path) ? -1 : next(path, flags, mode); \
  }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name) \
  int name(int folder, const char* path, int flags, ...) { \
    NEXT(name); \
    va_list more; \
    va_start(more, flags); \
    const mode_t mode = mode_of(flags, more); \
    va_end(more); \
    return BY_PATH(OPEN, folder, path) ? -1 : next(folder, path, flags, mode); \
  }
OPENS_AT(openat)
OPENS_AT(openat64)

#define FOPENS(name) \
  FILE* name(const char* path, const char* how) { \
    NEXT(name); \
    return BY_PATH(OPEN, AT_FDCWD, path) ? NULL : next(path, how); \
  }
FOPENS(fopen)
FOPENS(fopen64)

int creat(const char* path, mode_t mode) {
  NEXT(creat);
  return BY_PATH(OPEN, AT_FDCWD, path) ? -1 : next(path, mode);
}

// -- what changes a file ---------------------------------------------------------------------------------------------

ssize_t write(int fd, const void* bytes, size_t size) {
  NEXT(write);
  if (!watching() || !fd_concerns(fd)) return next(fd, bytes, size);
  const enum verdict found = judge(WRITE);
  if (found == PASS) return next(fd, bytes, size);
  if (found == DIES) {
    next(fd, bytes, size / 2);
    die();
  }
  errno = state->error;
  return -1;
}

#define PWRITES(name, offset_type) \
  ssize_t name(int fd, const void* bytes, size_t size, offset_type at) { \
    NEXT(name); \
    return BY_FD(WRITE, fd) ? -1 : next(fd, bytes, size, at); \
  }
PWRITES(pwrite, off_t)
PWRITES(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec* parts, int count) {
  NEXT(writev);
  return BY_FD(WRITE, fd) ? -1 : next(fd, parts, count);
}

#define SENDS(name, offset_type) \
  ssize_t name(int to, int from, offset_type* at, size_t size) { \
    NEXT(name); \
    return BY_FD(WRITE, to) ? -1 : next(to, from, at, size); \
  }
SENDS(sendfile, off_t)
SENDS(sendfile64, off64_t)

ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* there, size_t size, unsigned flags) {
  NEXT(copy_file_range);
  return BY_FD(WRITE, to) ? -1 : next(from, at, to, there, size, flags);
}

// What becomes of writing to a FILE, with errno set if it must fail, and no more watching if the process dies there.
static enum verdict of_file(FILE* file) {
  if (!watching() || !file || !fd_concerns(fileno(file))) return PASS;
  const enum verdict found = judge(WRITE);
  if (found == FAILS) errno = state->error;
  if (found == DIES) state->mode = OFF;
  return found;
}

// Die, and leave on disk what is in the buffer.
static void die_of(FILE* file) {
  fflush(file);
  die();
}

static int file_fails(FILE* file) {
  const enum verdict found = of_file(file);
  if (found == DIES) die_of(file);
  return found == FAILS;
}

size_t fwrite(const void* bytes, size_t size, size_t count, FILE* file) {
  NEXT(fwrite);
  const enum verdict found = of_file(file);
  if (found == DIES) {
    next(bytes, 1, size * count / 2, file);
    die_of(file);
  }
  return found == FAILS ? 0 : next(bytes, size, count, file);
}

int fputc(int byte, FILE* file) {
  NEXT(fputc);
  return file_fails(file) ? EOF : next(byte, file);
}

int fputs(const char* text, FILE* file) {
  NEXT(fputs);
  return file_fails(file) ? EOF : next(text, file);
}

int fflush(FILE* file) {  // of nothing, it is no call: lmplz asks for that with each piece of a message
  NEXT(fflush);
  return file && __fpending(file) && file_fails(file) ? EOF : next(file);
}

int fclose(FILE* file) {
  NEXT(fclose);
  const int failed = file_fails(file), error = errno;
  const int closed = next(file);
  if (failed) errno = error;
  return failed ? EOF : closed;
}

int fsync(int fd) {
  NEXT(fsync);
  return BY_FD(FSYNC, fd) ? -1 : next(fd);
}

int fdatasync(int fd) {
  NEXT(fdatasync);
  return BY_FD(FSYNC, fd) ? -1 : next(fd);
}

#define TRUNCATES(name, offset_type) \
  int name(int fd, offset_type size) { \
    NEXT(name); \
    return BY_FD(TRUNCATE, fd) ? -1 : next(fd, size); \
  }
TRUNCATES(ftruncate, off_t)
TRUNCATES(ftruncate64, off64_t)

// -- what changes a folder -------------------------------------------------------------------------------------------

int rename(const char* from, const char* to) {
  NEXT(rename);
  return BY_PATH(RENAME, AT_FDCWD, to) ? -1 : next(from, to);
}

int renameat(int folder, const char* from, int other, const char* to) {
  NEXT(renameat);
  return BY_PATH(RENAME, other, to) ? -1 : next(folder, from, other, to);
}

int renameat2(int folder, const char* from, int other, const char* to, unsigned flags) {
  NEXT(renameat2);
  return BY_PATH(RENAME, other, to) ? -1 : next(folder, from, other, to, flags);
}

int link(const char* from, const char* to) {
  NEXT(link);
  return BY_PATH(LINK, AT_FDCWD, to) ? -1 : next(from, to);
}

int linkat(int folder, const char* from, int other, const char* to, int flags) {
  NEXT(linkat);
  return BY_PATH(LINK, other, to) ? -1 : next(folder, from, other, to, flags);
}

int symlink(const char* from, const char* to) {
  NEXT(symlink);
  return BY_PATH(LINK, AT_FDCWD, to) ? -1 : next(from, to);
}

int unlink(const char* path) {
  NEXT(unlink);
  return BY_PATH(UNLINK, AT_FDCWD, path) ? -1 : next(path);
}

int unlinkat(int folder, const char* path, int flags) {
  NEXT(unlinkat);
  return BY_PATH(UNLINK, folder, path) ? -1 : next(folder, path, flags);
}

int rmdir(const char* path) {
  NEXT(rmdir);
  return BY_PATH(UNLINK, AT_FDCWD, path) ? -1 : next(path);
}

int remove(const char* path) {
  NEXT(remove);
  return BY_PATH(UNLINK, AT_FDCWD, path) ? -1 : next(path);
}

int mkdir(const char* path, mode_t mode) {
  NEXT(mkdir);
  return BY_PATH(MKDIR, AT_FDCWD, path) ? -1 : next(path, mode);
}

int mkdirat(int folder, const char* path, mode_t mode) {
  NEXT(mkdirat);
  return BY_PATH(MKDIR, folder, path) ? -1 : next(folder, path, mode);
}

int chmod(const char* path, mode_t mode) {
  NEXT(chmod);
  return BY_PATH(CHMOD, AT_FDCWD, path) ? -1 : next(path, mode);
}

int fchmod(int fd, mode_t mode) {
  NEXT(fchmod);
  return BY_FD(CHMOD, fd) ? -1 : next(fd, mode);
}

int fchmodat(int folder, const char* path, mode_t mode, int flags) {
  NEXT(fchmodat);
  return BY_PATH(CHMOD, folder, path) ? -1 : next(folder, path, mode, flags);
}

// -- reading ---------------------------------------------------------------------------------------------------------

ssize_t read(int fd, void* bytes, size_t size) {
  NEXT(read);
  return BY_FD(READ, fd) ? -1 : next(fd, bytes, size);
}

#define PREADS(name, offset_type) \
  ssize_t name(int fd, void* bytes, size_t size, offset_type at) { \
    NEXT(name); \
    return BY_FD(READ, fd) ? -1 : next(fd, bytes, size, at); \
  }
PREADS(pread, off_t)
PREADS(pread64, off64_t)

#define MAPS(name, offset_type) \
  void* name(void* at, size_t size, int protection, int flags, int fd, offset_type offset) { \
    NEXT(name); \
    if (fd >= 0 && BY_FD(MMAP, fd)) return MAP_FAILED; \
    return next(at, size, protection, flags, fd, offset); \
  }
MAPS(mmap, off_t)
MAPS(mmap64, off64_t)

// -- time ------------------------------------------------------------------------------------------------------------

// Whether an address is in the program itself, not in a library.
static int in_program(const void* address) {
  Dl_info program, found;
  return dladdr((void*)getauxval(AT_ENTRY), &program) && dladdr(address, &found) && program.dli_fbase == found.dli_fbase;
}

// std::chrono::steady_clock::now(), in nanoseconds. Libraries, which wait by it, are not deceived.
long steady_now(void) __asm__("_ZNSt6chrono3_V212steady_clock3nowEv");
long steady_now(void) {
  struct timespec found;
  clock_gettime(CLOCK_MONOTONIC, &found);
  if (state && state->leap && watching() && in_program(__builtin_return_address(0))) {
    found.tv_sec += state->leap * (atomic_fetch_add(&state->looks, 1) + 1);
  }
  return found.tv_sec * 1000000000L + found.tv_nsec;
}

// -- memory ----------------------------------------------------------------------------------------------------------

extern void* __libc_malloc(size_t);

static __thread int refused;  // the next malloc of this thread is

void* malloc(size_t size) {
  if (!refused) return __libc_malloc(size);
  refused = 0;
  errno = ENOMEM;
  return NULL;
}

static int no_memory(const void* caller) {
  if (!memory || !watching() || !in_program(caller)) return 0;
  const enum verdict found = judge(MALLOC);
  if (found == DIES) die();
  return found == FAILS;
}

// operator new: the library's own throws std::bad_alloc, through this one, when malloc refuses. A program that is not of
// C++ itself has none that is found.
void* operator_new(size_t size) __asm__("_Znwm");
void* operator_new(size_t size) {
  static __typeof__(&operator_new) next;
  if (!next) next = (__typeof__(&operator_new))dlsym(RTLD_NEXT, "_Znwm");
  if (!next) return __libc_malloc(size ? size : 1);
  refused = no_memory(__builtin_return_address(0));
  return next(size);
}
