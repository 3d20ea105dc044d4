/* Preloaded before the C library: the n-th call that changes a file below a folder fails, once or from then on, or the
 * process is killed there.
 *
 * Counted are open for writing, write, fsync, ftruncate, rename, link, unlink, mkdir and rmdir, also relative to a
 * folder. Armed for memory, it counts calls of the allocator and mmap instead, wherever they come from.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static long fails_at = 0, calls = 0;
static int error_number = 0, stays = 0;
static char failed_call[4400];
static int counts_memory = 0;

void fault_arm(const char *below, long at, int number, int from_then_on) {
  snprintf(folder, sizeof folder, "%s", below);
  fails_at = at, error_number = number, stays = from_then_on, calls = 0, failed_call[0] = 0;
  counts_memory = strcmp(folder, "memory") == 0;
}

void fault_disarm(void) { folder[0] = 0, counts_memory = 0; }

long fault_calls(void) { return calls; }

const char *fault_failed_call(void) { return failed_call; }

static int fails(const char *call, const char *path) {
  if (folder[0] == 0 || path == NULL || strncmp(path, folder, strlen(folder)) != 0) return 0;
  ++calls;
  if (fails_at == 0 || calls < fails_at || (calls > fails_at && !stays)) return 0;
  if (error_number < 0) raise(SIGKILL);
  if (failed_call[0] == 0) snprintf(failed_call, sizeof failed_call, "%s %s", call, path);
  errno = error_number;
  return 1;
}

/* Nothing may be allocated in here. */
static int memory_fails(const char *call) {
  if (!counts_memory) return 0;
  const long number = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (fails_at == 0 || number < fails_at || (number > fails_at && !stays)) return 0;
  if (failed_call[0] == 0) strcpy(failed_call, call);
  errno = ENOMEM;
  return 1;
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t octets) { return memory_fails("malloc") ? NULL : __libc_malloc(octets); }
void *calloc(size_t count, size_t octets) { return memory_fails("calloc") ? NULL : __libc_calloc(count, octets); }
void *realloc(void *memory, size_t octets) { return memory_fails("realloc") ? NULL : __libc_realloc(memory, octets); }

static int fails_on(const char *call, int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return fails(call, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int open_checked(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
  if ((flags & O_ACCMODE) != O_RDONLY && fails("open", path)) return -1;
  return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return open_checked(REAL(open), path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return open_checked(REAL(open64), path, flags, mode);
}

static const char *path_at(int at, const char *name) {
  static char path[4096];
  char link[64], below[2048];
  if (name == NULL || name[0] == '/' || at == AT_FDCWD) return name;
  snprintf(link, sizeof link, "/proc/self/fd/%d", at);
  const ssize_t length = readlink(link, below, sizeof below - 1);
  if (length < 0) return NULL;
  below[length] = 0;
  snprintf(path, sizeof path, "%s/%.1024s", below, name);
  return path;
}

static int openat_checked(int (*real)(int, const char *, int, ...), int at, const char *name, int flags, mode_t mode) {
  if ((flags & O_ACCMODE) != O_RDONLY && fails("openat", path_at(at, name))) return -1;
  return real(at, name, flags, mode);
}

int openat(int at, const char *name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return openat_checked(REAL(openat), at, name, flags, mode);
}

int openat64(int at, const char *name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return openat_checked(REAL(openat64), at, name, flags, mode);
}

ssize_t write(int file, const void *octets, size_t count) {
  if (!fails_on("write", file)) return REAL(write)(file, octets, count);
  const int number = errno;
  if (number == ENOSPC && count > 1) REAL(write)(file, octets, count / 2); /* a disk that fills up takes a part of it */
  errno = number;
  return -1;
}

int fsync(int file) { return fails_on("fsync", file) ? -1 : REAL(fsync)(file); }
int ftruncate(int file, off_t length) { return fails_on("ftruncate", file) ? -1 : REAL(ftruncate)(file, length); }
int ftruncate64(int file, off64_t length) { return fails_on("ftruncate", file) ? -1 : REAL(ftruncate64)(file, length); }
int rename(const char *from, const char *to) { return fails("rename", to) ? -1 : REAL(rename)(from, to); }
/* A full disk lets everything be removed. */
static int removal_fails(const char *call, const char *path) { return error_number != ENOSPC && fails(call, path); }
int unlink(const char *path) { return removal_fails("unlink", path) ? -1 : REAL(unlink)(path); }
int mkdir(const char *path, mode_t mode) { return fails("mkdir", path) ? -1 : REAL(mkdir)(path, mode); }
int rmdir(const char *path) { return removal_fails("rmdir", path) ? -1 : REAL(rmdir)(path); }
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
  return fails("linkat", path_at(to_at, to)) ? -1 : REAL(linkat)(from_at, from, to_at, to, flags);
}
int link(const char *from, const char *to) { return fails("link", to) ? -1 : REAL(link)(from, to); }
int renameat(int from_at, const char *from, int to_at, const char *to) {
  return fails("renameat", path_at(to_at, to)) ? -1 : REAL(renameat)(from_at, from, to_at, to);
}
int unlinkat(int at, const char *name, int flags) {
  return removal_fails("unlinkat", path_at(at, name)) ? -1 : REAL(unlinkat)(at, name, flags);
}
int mkdirat(int at, const char *name, mode_t mode) {
  return fails("mkdirat", path_at(at, name)) ? -1 : REAL(mkdirat)(at, name, mode);
}

void *mmap(void *place, size_t octets, int protection, int flags, int file, off_t offset) {
  if (memory_fails("mmap")) return MAP_FAILED;
  return (void *)syscall(SYS_mmap, place, octets, protection, flags, file, offset);
}
void *mmap64(void *place, size_t octets, int protection, int flags, int file, off64_t offset) {
  return mmap(place, octets, protection, flags, file, offset);
}
