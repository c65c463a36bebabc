#ifndef CLINUX_REGISTERS_H
#define CLINUX_REGISTERS_H
#include <stdint.h>
#include <sys/types.h>

// A thread's general purpose registers, as NT_PRSTATUS gives them (27 words on x86-64, 34 on arm64), and what else
// says how its call continues (arm64: 3 words). Opaque to Swift: what a register means differs by architecture, and
// stays in registers_ARCHITECTURE.c. Floating point, vector and matrix registers and pointer authentication keys are
// never touched: no code of Dormouse runs in the process that would change them.
enum { CLINUX_REGISTER_WORDS = 40 };
struct clinux_registers {
  uint64_t words[CLINUX_REGISTER_WORDS];
  uint64_t length;  // bytes in use
};

// What an image names. The numbers are part of the format.
enum { CLINUX_ARCHITECTURE_X86_64 = 0, CLINUX_ARCHITECTURE_ARM64 = 1, CLINUX_ARCHITECTURE_OTHER = 255 };
uint32_t clinux_architecture(void);

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
// On arm64 a call that returned EINTR for a stop has lost its first argument. This is the call in which the thread was
// before: 1 if it is the same one, and the argument is known from now on.
int clinux_registers_know_call(struct clinux_registers *registers, const struct clinux_call *before);
// 0 where the thread isn't in a call.
int clinux_registers_call(const struct clinux_registers *registers, struct clinux_call *call);
// Sets one argument, and the number, of the call that will be made again.
void clinux_registers_change_call(struct clinux_registers *registers, int64_t number, int argument,
                                  uint64_t value);
// The call isn't made again, and returns this.
void clinux_registers_end_call(struct clinux_registers *registers, int64_t result);
// Prepares a system call at `instruction`, an address that holds the instruction for it (x86-64 `syscall`, arm64 `svc #0`).
void clinux_registers_prepare_call(struct clinux_registers *registers, uint64_t instruction,
                                   int64_t number, const uint64_t arguments[6]);
uint64_t clinux_registers_instruction(const struct clinux_registers *registers);
// The thread is the first of a child that has been forked and hasn't run an instruction yet.
int clinux_registers_newborn(const struct clinux_registers *registers);
// Where the C library's own block of the thread is: its number, its robust mutexes, its rseq area. Start 0: it has none.
void clinux_registers_thread_block(const struct clinux_registers *registers, uint64_t *start,
                                   uint64_t *length);

// Adds what NT_PRSTATUS doesn't have, for a stopped thread that this thread traces. -errno.
int clinux_registers_complete(pid_t thread, struct clinux_registers *registers);
// Bytes that NT_PRSTATUS takes back.
uint64_t clinux_registers_settable(const struct clinux_registers *registers);
// Both are the same state of a program.
int clinux_registers_are_like(const struct clinux_registers *one, const struct clinux_registers *other);
// For the exit of a call that was injected into a thread with these registers of its own. On x86-64 the registers that
// are set at an event stop say how an interrupted call continues (0: nothing is to be done). On arm64 the kernel
// decides that on the way to the event stop, by what the call has returned, and keeps it to itself. 1: with the
// registers as changed here it decides again as it did for the thread's own call.
int clinux_registers_leave_call(struct clinux_registers *registers);
// A signal that a handler catches is pending. On arm64 a call that returned EINTR for a stop would be made again after the
// handler: it returns EINTR instead. `every_handler_ends_it`: its number doesn't say so (it receives or sends on a socket
// with a time-out), and it does so even after a handler with SA_RESTART. Returns 1 if it changed the registers.
int clinux_registers_interrupt_for_signal(struct clinux_registers *registers, int every_handler_ends_it);
// 1: /proc/PID/syscall doesn't show the call of a thread that is stopped or frozen. Its instruction is then the one
// that makes the call, or the one behind it.
int clinux_stop_hides_calls(void);
int clinux_call_instruction_length(void);

// Finds such an instruction in a copy of the vdso; offset, or -ENOENT.
int64_t clinux_find_syscall_instruction(const void *code, int64_t length);
// Writes that instruction and a jump to itself to `code`, and a loop of pause(2) behind them; returns the length. After the
// call the thread loops in place until we stop it, and does nothing else if we die.
int clinux_write_syscall_trampoline(void *code, int capacity);
enum { CLINUX_TRAMPOLINE_LENGTH = 64, CLINUX_TRAMPOLINE_OFFSETS = 16 };  // at most
// Where in the trampoline a thread can be found. Returns how many offsets there are.
int clinux_trampoline_offsets(uint64_t *offsets, int capacity);
// Sets the registers so that the thread, if it is continued, waits inside the trampoline and touches
// no other memory. `spins`: without any system call, for a process whose seccomp filter may forbid it.
void clinux_registers_park(struct clinux_registers *registers, uint64_t trampoline, int spins);
#endif
