// Rare things that a program may do while pages of it are missing.
//
//   edges        prints `ready PID`
//
// One command a line on stdin, one line on stdout for each:
//   wipe    child 0     a forked child finds MADV_WIPEONFORK memory empty, and all other as it was
//   leave   left 0      a thread ends without having touched its thread block, and is joined
//   drop    dropped 0   madvise, munmap and mmap at the same place: zeros, and stay so
//   quit
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "page.h"

enum { PAGE = PAGE_BYTES, PAGES = 512 };

static unsigned char *map(void *at) {
  unsigned char *got = mmap(at, PAGES * PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
  if (got == MAP_FAILED) { perror("edges: mmap"); exit(2); }
  return got;
}

static int differing(const unsigned char *at, int value, int from, int to) {
  int bad = 0;
  for (int p = from; p < to; p++)
    for (int i = 0; i < PAGE; i++)
      if (at[p * PAGE + i] != (unsigned char)(value ? value + p : 0)) { bad++; break; }
  return bad;
}

static unsigned char *fill(unsigned char *at, int value) {
  for (int p = 0; p < PAGES; p++) memset(at + p * PAGE, value + p, PAGE);
  return at;
}

static int pipes[2];

static long bare(long number, long a, long b, long c) {
#ifdef __x86_64__
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#endif
}

// Far from its thread block, which lies at the stack's upper end; and nothing of libc's behind it.
__attribute__((noinline)) static void leave_deep(int depth) {
  volatile char room[2 * PAGE];
  room[0] = (char)depth;
  if (depth > 0) leave_deep(depth - 1);
  else {
    bare(SYS_read, pipes[0], (long)room, 1);
    bare(SYS_exit, 0, 0, 0);
  }
  room[1] = room[0];
}

static void *leaver(void *unused) {
  leave_deep(4);
  return unused;
}

int main(void) {
  unsigned char *wiped = fill(map(NULL), 3), *apart = map(NULL), *kept = fill(map(NULL), 5);
  unsigned char *dropped = fill(map(NULL), 7);
  munmap(apart, PAGES * PAGE);
  pthread_t thread;
  if (madvise(wiped, PAGES * PAGE, MADV_WIPEONFORK) || pipe(pipes)) return 2;
  if (pthread_create(&thread, NULL, leaver, NULL)) return 2;
  printf("ready %d\n", getpid());
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    if (!strncmp(line, "wipe", 4)) {
      pid_t child = fork();
      if (child == 0)
        _exit((differing(wiped, 0, 0, PAGES) ? 1 : 0) + (differing(kept, 5, 0, PAGES) ? 2 : 0));
      int status = -1;
      waitpid(child, &status, 0);
      printf("child %d\n", status >> 8 | (differing(wiped, 3, 0, PAGES) ? 4 : 0));
    } else if (!strncmp(line, "leave", 5)) {
      if (write(pipes[1], "x", 1) != 1) return 2;
      usleep(20000);  // joining reads the thread block, too
      struct timespec limit;
      clock_gettime(CLOCK_REALTIME, &limit);
      limit.tv_sec += 3;
      printf("left %d\n", pthread_timedjoin_np(thread, NULL, &limit));
    } else if (!strncmp(line, "drop", 4)) {
      madvise(dropped, 100 * PAGE, MADV_DONTNEED);
      munmap(dropped + 200 * PAGE, 100 * PAGE);
      mmap(dropped + 200 * PAGE, 100 * PAGE, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      int bad = 0;
      for (int look = 0; look < 3; look++) {
        bad += differing(dropped, 0, 0, 100) + differing(dropped, 7, 100, 200)
               + differing(dropped, 0, 200, 300) + differing(dropped, 7, 300, PAGES);
        usleep(20000);
      }
      printf("dropped %d\n", bad);
    } else {
      break;
    }
    fflush(stdout);
  }
  return 0;
}
