import CLinux
import Testing

@testable import Hibernation
@testable import Linux

extension ImageFormatTests {
  @Test("An image of another processor or page size is refused, and the error names both machines")
  func otherMachine() throws {
    let current = ImageMachine.current
    let isX86 = current.bits >> 24 == CLINUX_ARCHITECTURE_X86_64
    let other = UInt32(isX86 ? CLINUX_ARCHITECTURE_ARM64 : CLINUX_ARCHITECTURE_X86_64)
    let larger = pageSize == 65536 ? 4096 : pageSize * 4
    for machine in [
      ImageMachine(processor: other, pageSize: pageSize),
      ImageMachine(processor: clinux_architecture(), pageSize: larger),
    ] {
      var file = try readFile(try Self.image(chunks: 1))
      #expect(file[11] == UInt8(current.bits >> 24))
      file[10] = file[10] & 0x0f | UInt8(machine.bits >> 16 & 0xf0)
      file[11] = UInt8(machine.bits >> 24)
      let path = Fixture.imagePath()
      try Self.write(file, to: path)
      let error = #expect(throws: ImageError.self) { try ImageReader(path: path) }
      #expect(
        error?.description.hasSuffix("is of another machine (\(machine)); this one is \(current)")
          == true)
    }
    #expect(
      ImageMachine(processor: 1, pageSize: 16384).description == "arm64 with pages of 16 KiB")
    #expect(ImageMachine(processor: 0, pageSize: 4096).bits == 0, "as before there were others")
  }
}
