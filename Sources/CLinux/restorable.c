#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clinux_memory.h"
#include "clinux_ptrace.h"

int clinux_writes_read_only_pages(void) {
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  char *page = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return -errno;
  int file = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  int result = file < 0 ? -errno : pwrite(file, "x", 1, (off_t)(uintptr_t)page) == 1 ? 1 : -errno;
  if (file >= 0) close(file);
  munmap(page, size);
  return result;
}

// Forks a child whose end sends no signal to this process, so no handler sees it.
static long fork_silently(void) { return syscall(SYS_clone, 0, 0, 0, 0, 0); }

static int wait_for(pid_t child, int *status) {
  while (waitpid(child, status, __WALL) < 0)
    if (errno != EINTR) return -errno;
  return 0;
}

static int write_through_file(pid_t process, const char *page) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/mem", process);
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return -errno;
  int result = pwrite(file, "x", 1, (off_t)(uintptr_t)page) == 1 ? 1 : -errno;
  close(file);
  return result;
}

int clinux_try_as_tracer(int *writes, int *shows_rseq) {
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  char *page = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return -errno;
  pid_t parent = getpid();
  long child = fork_silently();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);  // the parent died before
    for (;;) pause();
  }
  int result = child < 0 ? -errno : clinux_ptrace_seize((pid_t)child, 0);
  int status = 0;
  uint64_t address, length;
  if (result == 0) {
    *writes = write_through_file((pid_t)child, page);
    result = clinux_ptrace_interrupt((pid_t)child);
  }
  if (result == 0) result = wait_for((pid_t)child, &status);
  if (result == 0) {
    int area = clinux_ptrace_get_rseq_area((pid_t)child, &address, &length);
    *shows_rseq = area < 0 ? area : 1;
  }
  if (child > 0) {
    kill((pid_t)child, SIGKILL);
    do {
      if (wait_for((pid_t)child, &status) < 0) break;
    } while (!WIFEXITED(status) && !WIFSIGNALED(status));
  }
  munmap(page, size);
  return result;
}

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
// glibc 2.35 and later register an area for each thread.
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static volatile uint32_t *rseq_area(void) {
  if (!&__rseq_offset || !&__rseq_size || !__rseq_size) return NULL;
  char *thread;
#ifdef __x86_64__
  __asm__("mov %%fs:0, %0" : "=r"(thread));
#else
  __asm__("mrs %0, tpidr_el0" : "=r"(thread));
#endif
  return (volatile uint32_t *)(thread + __rseq_offset);
}

// Runs in the child. The area has the numbers of processors on which the child doesn't run, as
// after a restore, and the kernel compares them when the child moves to another processor.
static void change_rseq_area(volatile uint32_t *area) {
  struct timespec moment = {0, 1000000};
  cpu_set_t allowed, one;
  int cpus[2], count = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) _exit(0);
  for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
    if (CPU_ISSET(cpu, &allowed)) cpus[count++] = cpu;
  for (int turn = 0; turn < 4 && count > 0; turn++) {
    area[0] = area[0] + 1;
    area[1] = area[1] + 1;
    CPU_ZERO(&one);
    CPU_SET(cpus[turn % count], &one);
    sched_setaffinity(0, sizeof one, &one);
    nanosleep(&moment, NULL);
  }
  _exit(0);
}

int clinux_rseq_survives_restore(void) {
  volatile uint32_t *area = rseq_area();
  if (!area) return 1;
  long child = fork_silently();
  if (child < 0) return -errno;
  if (child == 0) {
    prctl(PR_SET_DUMPABLE, 0);
    signal(SIGSEGV, SIG_DFL);
    change_rseq_area(area);
  }
  int status = 0;
  int ended = wait_for((pid_t)child, &status);
  if (ended < 0) return ended;
  return WIFEXITED(status) ? 1 : 0;
}
#else
int clinux_rseq_survives_restore(void) { return 1; }
#endif
