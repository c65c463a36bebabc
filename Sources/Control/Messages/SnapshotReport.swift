/// The snapshot that a worker has provided to be shown.
public struct SnapshotReport: Codable, Hashable, Sendable {
  /// The MIME type: `text/plain`, or that of an image.
  public var mime: String
  /// The size in bytes.
  public var size: Int64
  /// The content of a text.
  public var text: String?
  /// The content of an image in base64, if it was requested.
  public var data: String?

  public init(mime: String, size: Int64, text: String? = nil, data: String? = nil) {
    self.mime = mime
    self.size = size
    self.text = text
    self.data = data
  }
}
