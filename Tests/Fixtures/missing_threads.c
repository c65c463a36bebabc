// Starts programs, starts and ends threads, and gets signals while memory isn't in RAM. missing.h
// describes the conversation.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "missing.h"

extern char **environ;
static const int one = SLOT_PAGES + SLOT_PAGES / 2, two = 3 * SLOT_PAGES + SLOT_PAGES / 2,
                 three = 5 * SLOT_PAGES + SLOT_PAGES / 2;
static int ends[2];

// A program's path, its argument, and the list of them are each in another page.
static void write_arguments(void) {
  char **list = (char **)at(three);
  strcpy((char *)at(one), "/bin/echo");
  strcpy((char *)at(two), "hello");
  list[0] = (char *)at(one);
  list[1] = (char *)at(two);
  list[2] = NULL;
  if (pipe(ends)) exit(3);
}

static const char *expect_hello(pid_t child) {
  char text[16] = "";
  int status = 1;
  CHECK(child > 0 && read(ends[0], text, sizeof text) == 6 && !memcmp(text, "hello\n", 6));
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  rewrite(one);
  rewrite(two);
  rewrite(three);
  return NULL;
}

static const char *exec_in_vfork(void) {
  MISSING(one);
  MISSING(two);
  MISSING(three);
  char *path = (char *)at(one), **list = (char **)at(three);
  pid_t child = vfork();
  if (child == 0) {
    dup2(ends[1], 1);
    execve(path, list, environ);
    _exit(9);
  }
  return expect_hello(child);
}

static const char *spawn_one(void) {
  MISSING(one);
  MISSING(two);
  MISSING(three);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  pid_t child = -1;
  CHECK(!posix_spawn(&child, (char *)at(one), &actions, NULL, (char **)at(three), environ));
  return expect_hello(child);
}

static const char *spawn_many(void) {
  MISSING(one);
  for (int i = 0; i < 20; i++) {
    pid_t child = -1;
    int status = 1;
    CHECK(!posix_spawn(&child, "/bin/true", NULL, NULL, (char *[]){"true", NULL}, environ));
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  CHECK(is_intact(one));
  return NULL;
}

static const char *exec_itself(void) {
  execl("/proc/self/exe", "missing_threads", "join", directory, NULL);
  return "it isn't executed";
}

// As a program does that makes itself a daemon.
static const char *close_all(void) {
  MISSING(one);
  for (int file = 3; file < 1024; file++) close(file);
  CHECK(is_intact(one));
  return NULL;
}

// Threads that the kernel itself writes about.

enum {
  THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM
};

static int end_at_once(void *argument) {
  (void)argument;
  syscall(SYS_exit, 0);
  return 0;
}

static int start_thread(int flags, int *parents, int *childs) {
  unsigned char *stack = map_pages(NULL, 64 * 1024, 0);
  return clone(end_at_once, stack + 64 * 1024, THREAD | flags, NULL, parents, NULL, childs);
}

static int has_ended(int thread) {
  for (int i = 0; i < 20000; i++) {
    if (syscall(SYS_tgkill, getpid(), thread, 0) < 0 && errno == ESRCH) return 1;
    usleep(1000);
  }
  return 0;
}

static const char *write_thread_numbers(void) {
  MISSING(one);
  MISSING(two);
  int *parents = (int *)at(one), *childs = (int *)at(two);
  int thread = start_thread(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID, parents, childs);
  CHECK(thread > 0 && has_ended(thread));
  CHECK(*parents == thread && *childs == thread);
  CHECK(has_but(parents, seeds[one], 0, 4) && has_but(childs, seeds[two], 0, 4));
  rewrite(one);
  rewrite(two);
  return NULL;
}

// The kernel doesn't wait for a page when a thread ends.
static const char *clear_thread_number(void) {
  MISSING(one);
  int thread = start_thread(CLONE_CHILD_CLEARTID, NULL, (int *)at(one));
  CHECK(thread > 0 && has_ended(thread));
  CHECK(is_missing(one) && is_intact(one));
  return NULL;
}

static pthread_mutex_t *mutex;
static pthread_t thread;

static void *wait_for_byte(void *argument) {
  unsigned char byte;
  if (mutex) pthread_mutex_lock(mutex);
  if (write(ends[1], "x", 1) != 1) exit(3);
  while (read(*(int *)argument, &byte, 1) != 1) {}
  return argument;
}

static int orders[2];
static void start_pthread(void) {
  char byte;
  if (pipe(orders) || pipe(ends) || pthread_create(&thread, NULL, wait_for_byte, orders)) exit(3);
  if (read(ends[0], &byte, 1) != 1) exit(3);
}

static void hold_mutex(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t *made = (pthread_mutex_t *)at(one);
  memset(made, 0, PAGE);
  pthread_mutex_init(made, &attributes);
  mutex = made;
  start_pthread();
}

// A thread waits in the kernel for a mutex with priority inheritance. The call begins again when
// the worker runs again, and then it doesn't wait for the mutex's page.

static int lock_result = -1;
static void *lock_mutex(void *argument) {
  lock_result = pthread_mutex_lock(argument);
  return argument;
}

static void wait_for_mutex(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  mutex = (pthread_mutex_t *)at(one);
  memset(mutex, 0, PAGE);
  if (pthread_mutex_init(mutex, &attributes) || pthread_mutex_lock(mutex)) exit(3);
  if (pthread_create(&thread, NULL, lock_mutex, mutex)) exit(3);
  // Its waiters are marked in the word before it waits in the kernel.
  while (!(*(volatile uint32_t *)mutex & FUTEX_WAITERS)) usleep(1000);
}

static const char *unlock_mutex(void) {
  CHECK(!pthread_mutex_unlock(mutex));
  CHECK(!pthread_join(thread, NULL));
  CHECK(!lock_result && pthread_mutex_trylock(mutex) == EBUSY);
  rewrite(one);
  return NULL;
}

static const char *join(void) {
  MISSING(one);
  CHECK(write(orders[1], "x", 1) == 1 && !pthread_join(thread, NULL));
  return NULL;
}

// The kernel doesn't wait for a page either when it looks for the mutexes of a thread that ends.
static const char *leave_mutex(void) {
  MISSING(one);
  CHECK(write(orders[1], "x", 1) == 1 && !pthread_join(thread, NULL));
  CHECK(is_missing(one));
  CHECK(pthread_mutex_trylock(mutex) == EBUSY);
  rewrite(one);
  return NULL;
}

// Signals that come while the thread waits for a page. The first `run` makes all other memory
// present; then the test stops whoever serves the pages.

static volatile sig_atomic_t alarms;
static void handle(int number) {
  (void)number;
  alarms++;
  if (write(1, "alarm\n", 6) != 6) _exit(4);
}

static int next_page(void) { return is_missing(one) ? one : is_missing(two) ? two : three; }

static void set_alarm(void) {
  alarms = 0;
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 50000}}, NULL);
}

static void catch_alarm(void) {
  sigaction(SIGALRM, &(struct sigaction){.sa_handler = handle}, NULL);
  if (pipe(ends)) exit(3);
}

static const char *alarm_while_using(void) {
  int page = next_page();
  MISSING(page);
  set_alarm();
  unsigned char *first = at(page);
  (*(volatile unsigned char *)first)++;
  (*(volatile unsigned char *)first)--;
  while (!alarms) usleep(1000);
  CHECK(alarms == 1 && is_intact(page));
  return NULL;
}

static const char *alarm_while_reading(void) {
  int page = next_page();
  MISSING(page);
  if (write(ends[1], "abcdefgh", 8) != 8) return "no pipe";
  set_alarm();
  CHECK(read(ends[0], at(page), 8) == 8);
  while (!alarms) usleep(1000);
  CHECK(alarms == 1 && !memcmp(at(page), "abcdefgh", 8) && has_but(at(page), seeds[page], 0, 8));
  rewrite(page);
  return NULL;
}

static const struct test tests[] = {
  {"exec_in_vfork", write_arguments, exec_in_vfork},
  {"spawn_one", write_arguments, spawn_one},
  {"spawn_many", NULL, spawn_many},
  {"exec_itself", NULL, exec_itself},
  {"close_all", NULL, close_all},
  {"write_thread_numbers", NULL, write_thread_numbers},
  {"clear_thread_number", NULL, clear_thread_number},
  {"join", start_pthread, join},
  {"unlock_mutex", wait_for_mutex, unlock_mutex},
  {"leave_mutex", hold_mutex, leave_mutex},
  {"alarm_while_using", catch_alarm, alarm_while_using},
  {"alarm_while_reading", catch_alarm, alarm_while_reading},
};

int main(int count, char **arguments) {
  return converse(count, arguments, tests, sizeof tests / sizeof *tests);
}
