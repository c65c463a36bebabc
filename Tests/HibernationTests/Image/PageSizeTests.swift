import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The page sizes of arm64 machines: 4, 16 or 64 KiB.
struct PageSizeTests {
  /// The suites that touch no other process's memory.
  static let suites = [
    "ImageFormatTests", "PageDivisionTests", "FillOrderTests", "PageRangeTests", "PageLayoutTests",
  ]

  @Test(.enabled(if: getenv("DORMOUSE_TEST_PAGE_SIZE") == nil), arguments: [16384, 65536])
  func `Images, and what is known of pages, are right with pages of other sizes`(size: Int) throws {
    let output = Fixture.imagePath()
    let file = try Descriptor.open(output, O_RDWR | O_CREAT, mode: 0o600)
    let filter = "^(HibernationTests|LinuxTests)\\.(\(Self.suites.joined(separator: "|")))/"
    var environment = ["DORMOUSE_TEST_PAGE_SIZE": "\(size)"]
    for name in ["PATH", "LD_LIBRARY_PATH", "TMPDIR"] {
      environment[name] = getenv(name).map { String(cString: $0) }
    }
    let bundle = try spawn(
      SpawnRequest(
        path: try #require(readLink("/proc/self/exe")),
        arguments: [
          CommandLine.arguments[0], "--testing-library", "swift-testing", "--no-parallel",
          "--filter", filter,
        ],
        environment: environment, directory: "/tmp", input: 0, output: file.raw, error: file.raw))
    var status: Int32 = 0
    waitpid(bundle.pid, &status, 0)
    let text = try readText(output)
    #expect(status == 0, "\(text.suffix(4000))")
    let last = text.split(separator: "\n").last { $0.contains("Test run with") }
    #expect(last?.contains("in \(Self.suites.count) suites passed") == true, "\(last ?? "")")
  }
}
