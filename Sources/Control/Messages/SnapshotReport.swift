/// The snapshot that a worker wants to be shown.
public struct SnapshotReport: Codable, Hashable, Sendable {
  /// `text/plain`, or an image's MIME type.
  public var mime: String
  /// Bytes.
  public var size: Int64
  /// Of a text.
  public var text: String?
  /// Of an image, base64, where it was asked for.
  public var data: String?

  public init(mime: String, size: Int64, text: String? = nil, data: String? = nil) {
    self.mime = mime
    self.size = size
    self.text = text
    self.data = data
  }
}
