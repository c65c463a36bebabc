// A program whose threads have areas for restartable sequences (rseq(2)), as each thread of glibc
// 2.35 has.
//
//   sequences THREADS          prints `ready PID`, or `none` if the C library has registered no
//   area
//   sequences THREADS endless  another thread is always inside a sequence
//   sequences THREADS huge     the other threads' areas are in huge pages, if the kernel has some
//
// One command a line on stdin, one line on stdout for each:
//   areas     areas TID:ADDRESS …   hexadecimal addresses, all threads that wait
//   check     wrong N               each thread compares the numbers in its area with the processor
//   on which it runs,
//                                   and the bytes beside its area with what it wrote there
//   starts    starts N committed M  how often the endless sequence began again; how often it was
//   left at its end
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

enum { MAX_THREADS = 64 };
static __thread uint64_t beside[64];

struct waiter {
  pthread_t thread;
  pid_t tid;
  volatile uint32_t *area;
  int ask[2], answer[2];
};
static struct waiter waiters[MAX_THREADS];
static int count;
static volatile uint64_t starts, committed;

static volatile uint32_t *own_area(void) {
  char *thread;
  __asm__("mov %%fs:0, %0" : "=r"(thread));
  return (volatile uint32_t *)(thread + __rseq_offset);
}

static void begin(struct waiter *w) {
  w->tid = (pid_t)syscall(SYS_gettid);
  w->area = own_area();
  for (int i = 0; i < 64; i++) beside[i] = (uint64_t)w->tid * 1000003 + (uint64_t)i;
}

static char wrong(struct waiter *w) {
  char bad = 0;
  for (int i = 0; i < 64; i++) bad |= beside[i] != (uint64_t)w->tid * 1000003 + (uint64_t)i;
  // The thread may move between the two looks.
  for (int turn = 0; turn < 100; turn++) {
    int before = sched_getcpu();
    uint32_t start = w->area[0], now = w->area[1];
    if (sched_getcpu() != before) continue;
    return bad | (start != (uint32_t)before) << 1 | (now != (uint32_t)before) << 2;
  }
  return bad | 8;
}

static void *serve(void *argument) {
  struct waiter *w = argument;
  char byte;
  begin(w);
  if (write(w->answer[1], "", 1) != 1) return NULL;
  while (read(w->ask[0], &byte, 1) == 1) {
    byte = wrong(w);
    if (write(w->answer[1], &byte, 1) != 1) break;
  }
  return NULL;
}

#ifdef __x86_64__
// The sequence is one jump to itself. The kernel leaves it when the thread was interrupted.
static void *endless(void *unused) {
  volatile uint32_t *area = own_area();
  for (;;) {
    starts++;
    __asm__ goto volatile(
        ".pushsection .data, \"aw\"\n .balign 32\n"
        "3: .long 0, 0\n .quad 1f, 2f - 1f, 4f\n .popsection\n"
        "leaq 3b(%%rip), %%rax\n movq %%rax, 8(%0)\n"
        "1: jmp 1b\n"
        "2:\n"
        ".pushsection .text.unlikely, \"ax\"\n"
        ".byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n"
        "4: jmp %l[again]\n .popsection\n"
        :
        : "r"(area)
        : "rax", "memory", "cc"
        : again);
    committed++;
  again:;
  }
  return unused;
}
#endif

// A stack that ends with a huge page; glibc puts the thread's block, with its area, at the end.
static int on_huge_pages(pthread_attr_t *attributes) {
  enum { HUGE = 2 << 20 };
  char *at = mmap(NULL, 3 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return -1;
  char *stack = (char *)(((uintptr_t)at + HUGE - 1) / HUGE * HUGE);
  madvise(stack, 2 * HUGE, MADV_HUGEPAGE);
  return pthread_attr_setstack(attributes, stack, 2 * HUGE);
}

int main(int arguments, char **argument) {
  if (!&__rseq_offset || !&__rseq_size || !__rseq_size) {
    printf("none\n");
    fflush(stdout);
    return 0;
  }
  count = arguments > 1 ? atoi(argument[1]) : 1;
  if (count > MAX_THREADS - 1) return 64;
  struct waiter *own = &waiters[count];
  begin(own);
  for (int i = 0; i < count; i++) {
    char byte;
    struct waiter *w = &waiters[i];
    if (pipe(w->ask) || pipe(w->answer)) return 2;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (arguments > 2 && !strcmp(argument[2], "huge") && on_huge_pages(&attributes)) return 2;
    if (pthread_create(&w->thread, &attributes, serve, w)) return 2;
    if (read(w->answer[0], &byte, 1) != 1) return 2;
  }
#ifdef __x86_64__
  pthread_t spinner;
  int spins = arguments > 2 && !strcmp(argument[2], "endless");
  if (spins && pthread_create(&spinner, NULL, endless, NULL)) return 2;
#endif
  printf("ready %d\n", getpid());
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    if (!strncmp(line, "areas", 5)) {
      printf("areas");
      for (int i = 0; i <= count; i++)
        printf(" %d:%llx", waiters[i].tid, (unsigned long long)(uintptr_t)waiters[i].area);
      printf("\n");
    } else if (!strncmp(line, "check", 5)) {
      int bad = wrong(own);
      for (int i = 0; i < count; i++) {
        char byte = 1;
        if (write(waiters[i].ask[1], "", 1) != 1) bad++;
        else if (read(waiters[i].answer[0], &byte, 1) != 1) bad++;
        bad += byte;
      }
      printf("wrong %d\n", bad);
    } else if (!strncmp(line, "starts", 6)) {
      printf("starts %llu committed %llu\n", (unsigned long long)starts,
             (unsigned long long)committed);
    } else {
      break;
    }
    fflush(stdout);
  }
  return 0;
}
