// Starts processes and threads in every possible way without a pause, and counts how often each
// succeeded.
//
//   spawnstorm MS [stops]    the children of vfork take up to MS milliseconds before they execute;
//                            `stops`: one child stops itself and is continued, over and over
//
// Prints `ready`. `counts` on stdin answers `counts N N …`, a number for each way: vfork in a
// thread, posix_spawn, fork, threads, a program that executes itself from its second thread, vfork
// in a process with one thread, and (with `stops`) stop and continue. End of input ends it, and
// everything that it has started.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { VFORK, SPAWN, FORK, THREAD, EXEC, LONELY, STOP, WAYS };
static atomic_long *counts;
static long milliseconds;
extern char **environ;

static void rest(long microseconds) {
  struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
  syscall(SYS_nanosleep, &time, 0);
}

static int waited_for(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) < 0)
    ;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void vfork_once(int way, unsigned *seed) {
  long before = milliseconds ? rand_r(seed) % (milliseconds * 1000) : 0;
  int executes = rand_r(seed) & 1;
  pid_t child = vfork();
  if (child == 0) {
    rest(before);
    if (executes) execl("/bin/true", "true", (char *)0);
    _exit(0);
  }
  if (child > 0 && waited_for(child)) counts[way]++;
}

static void *vforker(void *unused) {
  for (unsigned seed = 1;; rest(500)) vfork_once(VFORK, &seed);
  return unused;
}

static void *spawner(void *unused) {
  char *arguments[] = {"true", 0};
  for (pid_t child;; rest(1000))
    if (posix_spawn(&child, "/bin/true", 0, 0, arguments, environ) == 0 && waited_for(child))
      counts[SPAWN]++;
  return unused;
}

static void *nothing(void *unused) { return unused; }

static void *forker(void *unused) {
  for (pid_t child;; rest(1000)) {
    if ((child = fork()) == 0) _exit(0);
    if (child > 0 && waited_for(child)) counts[FORK]++;
  }
  return unused;
}

static void *threader(void *unused) {
  for (pthread_t one;; rest(300))
    if (!pthread_create(&one, 0, nothing, 0) && !pthread_join(one, 0)) counts[THREAD]++;
  return unused;
}

static void *execute(void *descriptor) {
  char number[16];
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // of this thread
  snprintf(number, sizeof number, "%d", (int)(long)descriptor);
  execl("/proc/self/exe", "spawnstorm", "again", number, (char *)0);
  return 0;
}

// Its first thread waits, its second one executes: it takes over the number of the first.
static void execute_again(int descriptor) {
  counts[EXEC]++;
  rest(2000);
  pthread_t one;
  pthread_create(&one, 0, execute, (void *)(long)descriptor);
  for (;;) pause();
}

static void *continuer(void *pid) {
  int status;
  for (;;) {
    if (waitpid((pid_t)(long)pid, &status, WUNTRACED) < 0 || !WIFSTOPPED(status)) continue;
    kill((pid_t)(long)pid, SIGCONT);
    counts[STOP]++;
  }
  return pid;
}

static pid_t child(void) {
  pid_t pid = fork();
  if (pid == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return pid;
}

int main(int count, char **arguments) {
  int again = !strcmp(arguments[1], "again");
  int descriptor = again ? atoi(arguments[2]) : memfd_create("counts", 0);
  if (!again && ftruncate(descriptor, 4096)) return 1;
  counts = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (again) execute_again(descriptor);
  milliseconds = atol(arguments[1]);
  int ways = count > 2 ? WAYS : STOP;
  if (child() == 0) execute((void *)(long)descriptor);
  if (child() == 0)
    for (unsigned seed = 2;; rest(500)) vfork_once(LONELY, &seed);
  pthread_t one;
  if (ways > STOP) {
    pid_t stopped = child();
    if (stopped == 0)
      for (;; rest(1000)) raise(SIGSTOP);
    pthread_create(&one, 0, continuer, (void *)(long)stopped);
  }
  pthread_create(&one, 0, vforker, 0);
  pthread_create(&one, 0, spawner, 0);
  pthread_create(&one, 0, forker, 0);
  pthread_create(&one, 0, threader, 0);
  puts("ready");
  fflush(stdout);
  for (char line[64]; fgets(line, sizeof line, stdin);) {
    printf("counts");
    for (int way = 0; way < ways; way++) printf(" %ld", counts[way]);
    puts("");
    fflush(stdout);
  }
  _exit(0);
}
