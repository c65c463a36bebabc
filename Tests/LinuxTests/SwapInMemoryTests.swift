import Linux
import Testing

@Suite("Swap that is in memory")
struct SwapInMemoryTests {
  @Test("Only the free part of zram areas is swap in memory")
  func zram() {
    let text = """
      Filename                                Type            Size            Used            \
      Priority
      /dev/zram0                              partition       4194304         1048576         100
      /swapfile                               file            2097152         0               -2
      /dev/block/zram1                        partition       1024            0               99
      """
    #expect(SwapInMemory.free(parsing: Array(text.utf8)) == (4_194_304 - 1_048_576 + 1024) * 1024)
  }

  @Test("Without zram, and in a file that can't be parsed, there is none")
  func none() {
    for text in ["", "Filename Type Size Used Priority\n", "x\n/dev/zram0 partition many 0 1\n"] {
      #expect(SwapInMemory.free(parsing: Array(text.utf8)) == 0)
    }
  }
}
