// System calls that use memory which isn't in RAM. missing.h describes the conversation.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "missing.h"

extern char **environ;
static const int one = SLOT_PAGES + SLOT_PAGES / 2, two = 3 * SLOT_PAGES + SLOT_PAGES / 2,
                 three = 5 * SLOT_PAGES + SLOT_PAGES / 2;
static unsigned char copy[PAGE] __attribute__((aligned(PAGE)));
static int ends[2];

static void make_pipe(void) { if (pipe(ends)) exit(3); }

static const char *use(void) {
  MISSING(one);
  MISSING(two);
  CHECK(is_intact(one));
  at(two)[5] ^= 9;
  CHECK(has_but(at(two), seeds[two], 5, 1));
  rewrite(two);
  return NULL;
}

static const char *read_pipe(void) {
  MISSING(one);
  memset(copy, 3, 100);
  CHECK(write(ends[1], copy, 100) == 100);
  CHECK(read(ends[0], at(one) + 50, 100) == 100);
  CHECK(at(one)[50] == 3 && at(one)[149] == 3 && has_but(at(one), seeds[one], 50, 100));
  rewrite(one);
  return NULL;
}

static const char *write_pipe(void) {
  MISSING(one);
  MISSING(two);
  CHECK(write(ends[1], at(one), PAGE) == PAGE);
  CHECK(read(ends[0], copy, PAGE) == PAGE && has(copy, seeds[one]));
  struct iovec part = {at(two), PAGE};
  CHECK(vmsplice(ends[1], &part, 1, 0) == PAGE);
  CHECK(read(ends[0], copy, PAGE) == PAGE && has(copy, seeds[two]));
  return NULL;
}

static const char *use_socket(void) {
  MISSING(one);
  MISSING(two);
  int sockets[2];
  CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
  CHECK(send(sockets[0], at(one), PAGE, 0) == PAGE);
  struct iovec part = {at(two), PAGE};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  CHECK(recvmsg(sockets[1], &message, MSG_WAITALL) == PAGE);
  seeds[two] = seeds[one];
  return NULL;
}

static const char *use_file(int flags) {
  char path[256];
  snprintf(path, sizeof path, "%s/missing-%d", directory, (int)getpid());
  int file = open(path, O_RDWR | O_CREAT | flags, 0600);
  // Some file systems have no O_DIRECT.
  if (file < 0) file = open(path, O_RDWR | O_CREAT, 0600);
  unlink(path);
  CHECK(file >= 0);
  CHECK(write(file, at(one), PAGE) == PAGE);
  CHECK(pread(file, at(two), PAGE, 0) == PAGE);
  seeds[two] = seeds[one];
  CHECK(are_intact(two - 1, 3));
  close(file);
  return NULL;
}

static const char *use_cached_file(void) {
  MISSING(one);
  MISSING(two);
  return use_file(0);
}

static const char *use_direct_file(void) {
  MISSING(one);
  MISSING(two);
  return use_file(O_DIRECT);
}

static void *wait_at_futex(void *argument) {
  while (syscall(SYS_futex, argument, FUTEX_WAIT_PRIVATE, *(uint32_t *)argument, NULL, NULL, 0)) {}
  return argument;
}

static pthread_t waiter;
static void start_waiter(void) {
  if (pthread_create(&waiter, NULL, wait_at_futex, at(one))) exit(3);
}

// The kernel has read the word again by now: the thread was interrupted.
static const char *wake_futex(void) {
  for (int tries = 0; tries < 20000; tries++) {
    if (syscall(SYS_futex, at(one), FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1) {
      pthread_join(waiter, NULL);
      return NULL;
    }
    usleep(1000);  // It doesn't wait there yet.
  }
  return "nobody waits";
}

static void clear_words(void) {
  for (int i = 0; i < 3; i++) memset(at(i ? i == 1 ? two : three : one), 0, PAGE);
}

static const char *use_futex(void) {
  MISSING(one);
  MISSING(two);
  struct timespec soon = {0, 1000000};
  CHECK(syscall(SYS_futex, at(one), FUTEX_WAIT_PRIVATE, 1, &soon, NULL, 0) < 0 && errno == EAGAIN);
  CHECK(syscall(SYS_futex, at(two), FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0) == 0);
  CHECK(((uint32_t *)at(two))[0] == (uint32_t)gettid());
  CHECK(syscall(SYS_futex, at(two), FUTEX_UNLOCK_PI, 0, NULL, NULL, 0) == 0);
  rewrite(one);
  rewrite(two);
  rewrite(three);
  return NULL;
}

// The kernel doesn't wait for a page here. A library has used the page just before.
static const char *change_futex(void) {
  MISSING(one);
  MISSING(two);
  int add = FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 0);
  for (int round = 0; round < 2; round++) {
    long result = syscall(SYS_futex, at(one), FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
    CHECK(round ? result == 0 : result < 0 && errno == EFAULT);
    result = syscall(SYS_futex, at(three), FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, at(two), add);
    CHECK(round ? result == 0 : result < 0 && errno == EFAULT);
    CHECK(!((uint32_t *)at(one))[round ? 1 : 0] && ((uint32_t *)at(two))[0] == (round ? 5 : 0));
  }
  CHECK(syscall(SYS_futex, at(one), FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
  rewrite(one);
  rewrite(two);
  rewrite(three);
  return NULL;
}

static const char *wait_for_events(void) {
  MISSING(one);
  MISSING(two);
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 77}, *got = (void *)at(one);
  CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) && write(ends[1], "x", 1) == 1);
  CHECK(epoll_wait(epoll, got, 4, 10000) == 1 && got->data.u64 == 77);
  CHECK(has_but(at(one), seeds[one], 0, sizeof *got));
  rewrite(one);
  close(epoll);
  CHECK(poll((struct pollfd *)at(two), 1, 0) >= 0 && has_but(at(two), seeds[two], 6, 2));
  rewrite(two);
  return NULL;
}

// Signals, on a stack that isn't in RAM.

enum { STACK = SLOT / 2, STACK_PAGES = STACK / PAGE };
static volatile uintptr_t handled_at;
static void handle(int number) {
  volatile unsigned char deep[32 * 1024];
  for (size_t i = 0; i < sizeof deep; i += 512) deep[i] = (unsigned char)number;
  handled_at = (uintptr_t)&deep[0];
}

static int was_handled(void) {
  return handled_at - (uintptr_t)at(one) < STACK;
}

static void set_stack(void) {
  sigaltstack(&(stack_t){.ss_sp = at(one), .ss_size = STACK}, NULL);
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle, .sa_flags = SA_ONSTACK}, NULL);
}

static const char *signal_on_stack(void) {
  MISSING(one + STACK_PAGES - 1);
  CHECK(!raise(SIGUSR1) && was_handled());
  CHECK(!sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL));
  rewrite_all(one, STACK_PAGES);
  return NULL;
}

static atomic_uintptr_t deepest;
static void *wait_for_byte(void *argument) {
  unsigned char byte;
  {
    volatile unsigned char deep[STACK / 2];
    memset((void *)deep, 1, sizeof deep);
    deepest = (uintptr_t)&deep[sizeof deep / 2];
  }
  while (read(ends[0], &byte, 1) != 1) {}
  return argument;
}

static void start_thread_on_stack(void) {
  make_pipe();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, at(one), STACK);
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle, .sa_flags = SA_RESTART}, NULL);
  if (pthread_create(&waiter, &attributes, wait_for_byte, NULL)) exit(3);
  while (!deepest) usleep(1000);
}

static const char *signal_in_thread(void) {
  MISSING((int)((deepest - (uintptr_t)region) / PAGE));
  CHECK(!pthread_kill(waiter, SIGUSR1));
  CHECK(write(ends[1], "x", 1) == 1 && !pthread_join(waiter, NULL));
  CHECK(was_handled());
  rewrite_all(one, STACK_PAGES);
  return NULL;
}

static const char *lock(void) {
  MISSING(one);
  MISSING(two);
  CHECK(!mlock(at(one), FEW * PAGE) && are_intact(one - 1, FEW + 2));
  CHECK(!munlock(at(one), FEW * PAGE));
  int result = madvise(at(two), FEW * PAGE, 23);  // MADV_POPULATE_WRITE
  CHECK((!result && !is_missing(two + 1)) || errno == EINVAL);
  CHECK(are_intact(two - 1, FEW + 2));
  return NULL;
}

static const char *advise(void) {
  MISSING(one);
  int advices[] = {MADV_MERGEABLE, MADV_HUGEPAGE, 25 /* MADV_COLLAPSE */, MADV_COLD, MADV_PAGEOUT,
                   MADV_WILLNEED, MADV_SEQUENTIAL, MADV_DONTDUMP};
  for (size_t i = 0; i < sizeof advices / sizeof *advices; i++) {
    madvise(at(one), SLOT / 2, advices[i]);
    CHECK(are_intact(one + (int)i / 2, 1));
  }
  CHECK(are_intact(one - 1, SLOT_PAGES / 2 + 2));
  return NULL;
}

static const char *write_times(void) {
  MISSING(one);
  MISSING(two);
  MISSING(three);
  struct timespec *now = (void *)at(one);
  CHECK(!clock_gettime(CLOCK_MONOTONIC, now) && now->tv_sec >= 0 && now->tv_nsec < 1000000000);
  CHECK(has_but(at(one), seeds[one], 0, sizeof *now));
  struct itimerval *timer = (void *)at(two);
  CHECK(!getitimer(ITIMER_REAL, timer) && !timer->it_value.tv_sec);
  CHECK(has_but(at(two), seeds[two], 0, sizeof *timer));
  CHECK(getrandom(at(three), 64, 0) == 64 && has_but(at(three), seeds[three], 0, 64));
  rewrite(one);
  rewrite(two);
  rewrite(three);
  return NULL;
}

static const struct test tests[] = {
  {"use", NULL, use},
  {"read_pipe", make_pipe, read_pipe},
  {"write_pipe", make_pipe, write_pipe},
  {"use_socket", NULL, use_socket},
  {"use_cached_file", NULL, use_cached_file},
  {"use_direct_file", NULL, use_direct_file},
  {"wake_futex", start_waiter, wake_futex},
  {"use_futex", clear_words, use_futex},
  {"change_futex", clear_words, change_futex},
  {"wait_for_events", make_pipe, wait_for_events},
  {"signal_on_stack", set_stack, signal_on_stack},
  {"signal_in_thread", start_thread_on_stack, signal_in_thread},
  {"lock", NULL, lock},
  {"advise", NULL, advise},
  {"write_times", NULL, write_times},
};

int main(int count, char **arguments) {
  return converse(count, arguments, tests, sizeof tests / sizeof *tests);
}
