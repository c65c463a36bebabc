import Linux
import Testing

@Suite("Swap areas")
struct SwapAreasTests {
  @Test func `Only the free part of zram areas is swap in memory`() {
    let text = """
      Filename                                Type            Size            Used            \
      Priority
      /dev/zram0                              partition       4194304         1048576         100
      /swapfile                               file            2097152         0               -2
      /dev/block/zram1                        partition       1024            0               99
      """
    let free: Int64 = 4_194_304 - 1_048_576 + 1024
    #expect(SwapArea.freeInMemory(parsing: Array(text.utf8)) == free * 1024)
  }

  @Test func `Without zram, and in a file that can't be parsed, there is none`() {
    for text in ["", "Filename Type Size Used Priority\n", "x\n/dev/zram0 partition many 0 1\n"] {
      #expect(SwapArea.freeInMemory(parsing: Array(text.utf8)) == 0)
    }
  }

  @Test func `Each line after the first is an area, with its size in bytes`() {
    let text =
      "Filename\tType\tSize\tUsed\n/dev/zram0           partition\t8\t3\n/s file\n"
    #expect(
      SwapArea.parse(Array(text.utf8)) == [
        SwapArea(name: "/dev/zram0", kind: "partition", size: 8192, used: 3072),
        SwapArea(name: "/s", kind: "file"),
      ])
    #expect(SwapArea.parse(Array("Filename\tType\n".utf8)) == [])
    #expect(SwapArea.parse([]) == [])
  }
}
