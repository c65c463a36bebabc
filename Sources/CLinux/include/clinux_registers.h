#ifndef CLINUX_REGISTERS_H
#define CLINUX_REGISTERS_H
#include <stdint.h>

// A thread's general purpose registers, as NT_PRSTATUS gives them (27 words on x86-64). Opaque to
// Swift: what a register means differs by architecture, and stays in registers.c.
enum { CLINUX_REGISTER_WORDS = 40 };
struct clinux_registers {
  uint64_t words[CLINUX_REGISTER_WORDS];
  uint64_t length;  // bytes in use
};

// 1 where injecting system calls is implemented for this architecture.
int clinux_registers_supported(void);
// The thread was stopped inside a system call (its instruction pointer isn't in code of its own).
int clinux_registers_in_syscall(const struct clinux_registers *registers);
// What it would return: -512 (ERESTARTSYS), -514, -516, -EINTR, or a plain result.
int64_t clinux_registers_result(const struct clinux_registers *registers);
// The thread was stopped between the end of a system call and its own code: the call is over, and won't
// be made again when the thread continues. 0 for EINTR: a stop causes that, too.
int clinux_registers_has_result(const struct clinux_registers *registers);
// A stop makes some calls return EINTR although no handler ran (epoll_wait, semop, sigtimedwait,
// receiving with a time-out; signal(7)). Where that is so, sets the result to the kernel's own
// ERESTARTNOHAND, which these calls would return if they were written today: the kernel decides when
// the thread continues. If a signal handler runs then, the call returns EINTR; else it is made again.
// Returns 1 if it changed the registers.
int clinux_registers_mend_interrupted(struct clinux_registers *registers);
// A call that was interrupted.
struct clinux_call {
  int64_t number;
  uint64_t arguments[6];
  uint64_t stack;
  uint64_t instruction;
  int is_made_again;   // its result is one of the kernel's restart codes
  int keeps_its_end;   // ERESTART_RESTARTBLOCK: the kernel has kept when it ends
  int was_mended;      // ERESTARTNOHAND, which for some calls is `clinux_registers_mend_interrupted`'s
};
// 0 where the thread isn't in a call.
int clinux_registers_call(const struct clinux_registers *registers, struct clinux_call *call);
// Sets one argument, and the number, of the call that will be made again.
void clinux_registers_change_call(struct clinux_registers *registers, int64_t number, int argument,
                                  uint64_t value);
// The call isn't made again, and returns this.
void clinux_registers_end_call(struct clinux_registers *registers, int64_t result);
// Prepares a system call at `instruction`, an address that holds a `syscall` instruction.
void clinux_registers_prepare_call(struct clinux_registers *registers, uint64_t instruction,
                                   int64_t number, const uint64_t arguments[6]);
uint64_t clinux_registers_instruction(const struct clinux_registers *registers);
// The thread is the first of a child that has been forked and hasn't run an instruction yet.
int clinux_registers_newborn(const struct clinux_registers *registers);
// Where the thread's own block of memory is (x86-64: fs), 0 where it has none.
uint64_t clinux_registers_thread_pointer(const struct clinux_registers *registers);

// Finds a `syscall` instruction in a copy of the vdso; offset, or -ENOENT.
int64_t clinux_find_syscall_instruction(const void *code, int64_t length);
// Writes `syscall; jmp .` to `code`, and a loop of pause(2) behind it; returns the length. After the
// call the thread loops in place until we stop it, and does nothing else if we die.
int clinux_write_syscall_trampoline(void *code, int capacity);
// Where in the trampoline a thread can be found. Returns how many offsets there are.
int clinux_trampoline_offsets(uint64_t *offsets, int capacity);
// Sets the registers so that the thread, if it is continued, waits inside the trampoline and touches
// no other memory. `spins`: without any system call, for a process whose seccomp filter may forbid it.
void clinux_registers_park(struct clinux_registers *registers, uint64_t trampoline, int spins);
#endif
