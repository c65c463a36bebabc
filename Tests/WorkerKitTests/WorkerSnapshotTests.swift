import JSONLines
import Testing
import WorkerProtocol

@testable import WorkerKit

@Suite(.timeLimit(.minutes(10))) struct SnapshotTests {
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
    ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"), ("\u{FF}\u{FE}", "w7/Dvg=="),
  ])
  func `Base64 is encoded as in RFC 4648`(_ text: String, _ encoded: String) {
    #expect(Base64.encode(Array(text.utf8)) == encoded)
  }

  @Test func `Base64 encodes all byte values`() {
    let bytes = (0...255).map { UInt8($0) }
    let text = Base64.encode(bytes)
    #expect(text.hasPrefix("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIj"))
    #expect(text.hasSuffix("8PHy8/T19vf4+fr7/P3+/w=="))
  }

  @Test
  func `A snapshot is sent when it is set, and its provider is called on entering the background`()
    async throws
  {
    let (daemon, worker, peer) = try await KitDaemon.connected()
    worker.setSnapshot(.image(mime: "image/png", bytes: [0x89, 0x50, 0x4E]))
    #expect(
      try await daemon.message() == .snapshot(.image(mime: "image/png", base64: "iVBO")))
    #expect(
      !worker.setSnapshot(.image(mime: "image/png", bytes: .init(repeating: 0, count: 200_000))))
    #expect(
      worker.setSnapshot(.image(mime: "image/png", bytes: .init(repeating: 0, count: 190_000))))
    _ = try await daemon.message()
    worker.setSnapshotProvider { .text("as it was") }
    peer.request(1, .didEnterBackground)
    #expect(try await daemon.messages(2) == [.snapshot(.text("as it was")), .done(id: 1)])
    worker.setSnapshotProvider(nil)
    peer.request(2, .didEnterBackground)
    #expect(try await daemon.message() == .done(id: 2))
  }
}
