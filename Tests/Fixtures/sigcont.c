// Counts the SIGCONTs that reach its handler. Prints `ready PID`, and `sigcont N` for each SIGUSR1.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t continued, asked;

static void on_continue(int number) { (void)number; continued++; }
static void on_ask(int number) { (void)number; asked++; }

int main(void) {
  struct sigaction on = {.sa_handler = on_continue};
  sigaction(SIGCONT, &on, NULL);
  on.sa_handler = on_ask;
  sigaction(SIGUSR1, &on, NULL);
  sigset_t signals, none;
  sigemptyset(&none);
  sigemptyset(&signals);
  sigaddset(&signals, SIGCONT);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, NULL);  // delivered inside sigsuspend only
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready %d\n", (int)getpid());
  for (int answered = 0;;) {
    while (answered < asked) printf("sigcont %d\n", (int)continued), answered++;
    sigsuspend(&none);
  }
}
