import Testing

@testable import CRI

@Suite("Messages of CRI") struct ProtobufTests {
  @Test("A message is read as it was written, and fields of a newer version are passed over")
  func sandbox() throws {
    let bytes = ProtobufWriter { pod in
      pod.text(1, "3f2a")
      pod.message(2) {
        $0.text(1, "shop")
        $0.text(2, "uid")
        $0.text(3, "default")
      }
      pod.number(3, 1)
      pod.number(4, .max)
      pod.map(6, ["dormouse.io/policy": "server", "empty": ""])
      pod.text(900, "new")
    }.bytes
    let pod = try CRIMessages.Sandbox(bytes[...])
    #expect(pod.id == "3f2a" && pod.name == "shop" && pod.namespace == "default" && !pod.isReady)
    #expect(pod.annotations == ["dormouse.io/policy": "server", "empty": ""])
  }

  @Test(
    "Events of containerd before 2.0 aren't followed: its other listeners would miss them",
    arguments: [
      ("containerd", "1.6.20~ds1", false), ("containerd", "v1.7.24", false),
      ("containerd", "2.1.9+unknown", true), ("containerd", "v2.0.0", true),
      ("containerd", "unknown", true), ("cri-o", "1.30.1", true),
    ])
  func events(runtime: String, version: String, areFollowed: Bool) throws {
    let bytes = ProtobufWriter {
      $0.text(2, runtime)
      $0.text(3, version)
    }.bytes
    #expect(try CRIMessages.Version(bytes[...]).hasEventsForAll == areFollowed)
  }

  @Test("The bytes are those that the format's description gives")
  func vectors() throws {
    // From "Protocol Buffers: encoding": a number 150, and the text "testing".
    #expect(ProtobufWriter { $0.number(1, 150) }.bytes == [0x08, 0x96, 0x01])
    #expect(ProtobufWriter { $0.text(2, "testing") }.bytes == [0x12, 7] + Array("testing".utf8))
    #expect(ProtobufWriter { $0.number(1, 0) }.bytes.isEmpty)
    // Fields of fixed length.
    var reader = ProtobufReader([0x0D, 1, 0, 0, 0, 0x11, 2, 0, 0, 0, 0, 0, 0, 1])
    let first = try #require(try reader.next())
    let second = try #require(try reader.next())
    #expect(first.field == 1 && first.value.number == 1)
    #expect(second.field == 2 && second.value.number == 1 << 56 | 2)
    #expect(try reader.next() == nil)
  }

  @Test(
    "What isn't a message is refused",
    arguments: [
      [0x08], [0x08, 0x80], [0x0A, 5, 1],
      [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
      [0x08] + [UInt8](repeating: 0xFF, count: 10), [0x00, 1], [0x0B], [0x0F], [0x0D, 1, 2, 3],
    ] as [[UInt8]])
  func malformed(bytes: [UInt8]) {
    #expect(throws: ProtobufReader.Malformed.self) { try CRIMessages.Version(bytes[...]) }
  }

  @Test("Random bytes are read or refused")
  func random() {
    var generator = SystemRandomNumberGenerator()
    let whole = ProtobufWriter { list in
      for number in 0..<3 { list.message(1) { $0.text(1, "pod\(number)") } }
    }.bytes
    for round in 0..<20_000 {
      var bytes = whole
      if round % 2 == 0 {
        bytes = (0..<Int.random(in: 0..<40, using: &generator)).map { _ in
          UInt8.random(in: 0...255, using: &generator)
        }
      } else {
        for _ in 0..<3 {
          bytes[Int.random(in: bytes.indices, using: &generator)] = .random(
            in: 0...255, using: &generator)
        }
      }
      // Either is right; it must end.
      _ = try? CRIMessages.Sandboxes(bytes[...])
      _ = try? CRIMessages.ContainerStatus(bytes[...])
    }
  }
}
