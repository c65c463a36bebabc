import Testing

@testable import Breadcrumbs

@Suite("Commands") struct CommandTests {
  @Test(
    "A command line is split into words, and an edit's text is kept unchanged",
    arguments: [
      ("entries", .entries), ("  show   5 ", .show(5)), ("show", .show(nil)),
      ("edit 3  two  blanks ", .edit(3, "two  blanks ")), ("edit 3 a\nb", .edit(3, "a\nb")),
      ("slideshow start", .startSlides), ("slideshow next", .nextSlide(times: 1)),
      ("slideshow next 12", .nextSlide(times: 12)), ("quit", .quit),
    ] as [(String, Command)])
  func good(line: String, command: Command) throws {
    #expect(try Command(line: line) == command)
  }

  @Test(
    "An unknown command, an incomplete one and one with wrong arguments give different errors",
    arguments: [
      ("", .unknown("")), ("Entries", .unknown("Entries")), ("show x", .notANumber("x")),
      ("show 0", .notANumber("0")), ("show 1 2", .surplus("2")),
      ("edit 3", .incomplete("edit N TEXT")),
      ("slideshow stop 3", .surplus("3")), ("slideshow dance", .unknown("slideshow dance")),
    ] as [(String, CommandError)])
  func bad(line: String, error: CommandError) {
    #expect(throws: error) { try Command(line: line) }
  }
}

@Suite("HTTP requests") struct HTTPRequestTests {
  private static func removeFirst(_ text: String) throws -> (HTTPRequest?, remaining: Int) {
    var bytes = Array(text.utf8)
    let request = try HTTPRequest.removeFirst(from: &bytes)
    return (request, bytes.count)
  }

  @Test("HTTP requests are read one by one, each complete with its body")
  func pipelined() throws {
    let (request, remaining) = try Self.removeFirst(
      "POST /edit/3?x=1 HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello" + "GET / HTTP/1.0\r\n\r\n")
    #expect(request?.path == ["edit", "3"])
    #expect(request?.body == "hello")
    #expect(request?.keepsOpen == true)
    #expect(remaining == "GET / HTTP/1.0\r\n\r\n".utf8.count)
    #expect(try Self.removeFirst("GET /edit HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf").0 == nil)
    #expect(try Self.removeFirst("GET /%C3%A4%20b HTTP/1.0\r\n\r\n").0?.path == ["ä b"])
  }

  @Test(
    "Malformed, too large and unsupported HTTP requests are refused",
    arguments: [
      ("\r\n\r\n", .malformed), ("GET x HTTP/1.1\r\n\r\n", .malformed),
      ("GET /%zz HTTP/1.1\r\n\r\n", .malformed), ("GET /%4 HTTP/1.1\r\n\r\n", .malformed),
      ("GET / HTTP/1.1\r\nnonsense\r\n\r\n", .malformed),
      ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", .malformed),
      ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", .malformed),
      ("POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", .tooLarge),
      ("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", .tooLarge),
      ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", .unsupported),
      (String(repeating: "x", count: 9000), .tooLarge),
    ] as [(String, HTTPRequest.Problem)])
  func refused(text: String, problem: HTTPRequest.Problem) {
    #expect(throws: problem) { try Self.removeFirst(text) }
  }
}
