# A 32-bit program without a library: prints `ready`, then echoes its input. Has a page of data of
# its own that must stay what it is, and says `wrong` if it doesn't.
#   as --32 -o program32.o program32.s && ld -m elf_i386 -o program32 program32.o
.globl _start
.bss
.balign 4096
own: .skip 8192
.data
hello: .ascii "ready\n"
fine:  .ascii "fine\n"
wrong: .ascii "wrong\n"
line:  .skip 64
.text
_start:
  movl $0x12345678, own+4096
  movl $4, %eax
  movl $1, %ebx
  movl $hello, %ecx
  movl $6, %edx
  int $0x80
again:
  movl $3, %eax
  xorl %ebx, %ebx
  movl $line, %ecx
  movl $64, %edx
  int $0x80
  testl %eax, %eax
  jle end
  movl $fine, %ecx
  movl $5, %edx
  cmpl $0x12345678, own+4096
  je tell
  movl $wrong, %ecx
  movl $6, %edx
tell:
  movl $4, %eax
  movl $1, %ebx
  int $0x80
  jmp again
end:
  movl $1, %eax
  xorl %ebx, %ebx
  int $0x80
