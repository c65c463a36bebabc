import Control

/// What the overview shows of one worker. Sizes in bytes, times in seconds.
struct Card: Encodable, Hashable, Sendable {
  var name: String
  var state: String
  /// The same in words: why a worker has no processes.
  var shown: String
  /// Why it is in this state.
  var reason: String
  var footprint: Int64
  var peakFootprint: Int64
  var processes: Int
  var secondsInState: Double
  var secondsSinceUse: Double
  /// While it sleeps, where it is known.
  var secondsAsleep: Double?
  /// Why it isn't terminated for lack of memory; nil: it may be.
  var protection: String?
  /// While it is hibernated: what its image holds, and how much smaller its footprint is.
  var imageSize: Int64?
  var saved: Int64?
  var restartsInSeconds: Double?
  /// What it says of itself.
  var says: String?
  /// Its configuration has changed since its launch.
  var isOutdated: Bool?
  /// Its place in the order of termination and hibernation, from 1 on, where it has one.
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
  /// Where an image is, and its type.
  var image: String?
  var mime: String

  private static let most = 4000

  /// `version`: changes with the content, so that a browser doesn't show an older image.
  init(_ snapshot: SnapshotReport, of worker: String, version: Int) {
    mime = snapshot.mime
    if let text = snapshot.text {
      self.text = String(text.prefix(Self.most))
    } else if Self.images.contains(snapshot.mime) {
      image = "/api/workers/\(pathEscaped(worker))/snapshot?v=\(version)"
    }
  }

  /// Pictures without scripts.
  static let images: Set<String> = [
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp",
  ]
}

/// A name as a part of a path: RFC 3986, everything but `unreserved` is encoded.
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

/// The opposite; nil: no valid encoding, or no UTF-8.
func pathUnescaped(_ text: some StringProtocol) -> String? {
  var bytes: [UInt8] = []
  var rest = Array(text.utf8)[...]
  while let byte = rest.popFirst() {
    guard byte == UInt8(ascii: "%") else {
      bytes.append(byte)
      continue
    }
    let digits = String(decoding: rest.prefix(2), as: UTF8.self)
    guard digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit),
      let value = UInt8(digits, radix: 16)
    else { return nil }
    bytes.append(value)
    rest = rest.dropFirst(2)
  }
  return String(validating: bytes, as: UTF8.self)
}
