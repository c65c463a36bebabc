import Control
import NIOCore

/// One event of a stream (text/event-stream). It is created once for all pages that get it.
struct ServerEvent: Sendable {
  let buffer: ByteBuffer

  /// Creates an event with `value` as JSON, which has no line breaks.
  init(_ name: StaticString, _ value: some Encodable) {
    var bytes = Array("event: \(name)\ndata: ".utf8)
    // The dashboard's types always have a JSON form. A page that doesn't get this event gets the
    // next one.
    bytes += (try? WireCodec.json(for: value)) ?? Array("null".utf8)
    bytes += "\n\n".utf8
    buffer = ByteBuffer(bytes: bytes)
  }
}
