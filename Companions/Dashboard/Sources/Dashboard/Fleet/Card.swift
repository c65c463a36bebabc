import Control

/// The data of one worker in the overview. Sizes are in bytes, times in seconds.
struct Card: Encodable, Hashable, Sendable {
  var name: String
  var state: String
  /// The state in words. For a worker without processes it has the reason.
  var shown: String
  /// The reason for the state.
  var reason: String
  var footprint: Int64
  var peakFootprint: Int64
  var processes: Int
  var secondsInState: Double
  var secondsSinceUse: Double
  /// The time for which the worker has slept, if it sleeps and that is known.
  var secondsAsleep: Double?
  /// The reason why the worker isn't terminated for lack of memory; nil if it may be.
  var protection: String?
  /// The size of the image, and the memory that it saves, while the worker is hibernated.
  var imageSize: Int64?
  var saved: Int64?
  var restartsInSeconds: Double?
  /// The status that the worker has reported.
  var says: String?
  /// True if its configuration has changed since its launch.
  var isOutdated: Bool?
  /// Its positions in the orders of termination and of hibernation, from 1 on; nil if it has none.
  var terminated: Int?
  var hibernated: Int?
  var snapshot: ShownSnapshot?

  init(_ worker: WorkerReport) {
    name = worker.name
    state = worker.state
    shown = ShownState(of: worker).text
    reason = worker.reason.text
    footprint = worker.footprint
    peakFootprint = worker.peakFootprint
    processes = worker.processes
    secondsInState = worker.secondsInState
    secondsSinceUse = worker.secondsSinceUse
    secondsAsleep = worker.secondsAsleep
    protection = worker.protection?.text
    imageSize = worker.imageSize
    saved = worker.saved
    restartsInSeconds = worker.restartsInSeconds
    says = worker.says
    isOutdated = worker.changedSinceLaunch.map { !$0.isEmpty }
  }

  static func isAsleep(_ state: String) -> Bool { state == "suspended" || state == "hibernated" }
}

/// A worker's snapshot, for a page.
struct ShownSnapshot: Encodable, Hashable, Sendable {
  /// The beginning of a text.
  var text: String?
  /// The path of an image. `mime` is its type.
  var image: String?
  var mime: String

  private static let maxLength = 4000

  /// - Parameter version: A number that changes with the content, so that a browser doesn't show an
  ///   older image.
  init(_ snapshot: SnapshotReport, of worker: String, version: Int) {
    mime = snapshot.mime
    if let text = snapshot.text {
      self.text = String(text.prefix(Self.maxLength))
    } else if Self.images.contains(snapshot.mime) {
      image = "/api/workers/\(pathEscaped(worker))/snapshot?v=\(version)"
    }
  }

  /// The types of images that have no scripts.
  static let images: Set<String> = [
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp",
  ]
}

/// Encodes a name as a component of a path: everything but `unreserved` of RFC 3986 is encoded.
func pathEscaped(_ text: String) -> String {
  text.utf8.map { byte -> String in
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "."), UInt8(ascii: "~"):
      return String(Unicode.Scalar(byte))
    default:
      let digits = String(byte, radix: 16, uppercase: true)
      return "%" + (digits.utf8.count < 2 ? "0" : "") + digits
    }
  }.joined()
}

/// Decodes a component of a path; nil if the encoding or the UTF-8 is invalid.
func pathUnescaped(_ text: some StringProtocol) -> String? {
  var bytes: [UInt8] = []
  var remainder = Array(text.utf8)[...]
  while let byte = remainder.popFirst() {
    guard byte == UInt8(ascii: "%") else {
      bytes.append(byte)
      continue
    }
    let digits = String(decoding: remainder.prefix(2), as: UTF8.self)
    guard digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit),
      let value = UInt8(digits, radix: 16)
    else { return nil }
    bytes.append(value)
    remainder = remainder.dropFirst(2)
  }
  return String(validating: bytes, as: UTF8.self)
}
