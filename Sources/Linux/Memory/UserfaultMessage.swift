/// A request to the package's service for userfaultfd: one packet, which is all of a connection.
public enum UserfaultRequest: String, CaseIterable, Sendable {
  /// Requests an open descriptor of /dev/userfaultfd.
  case device
  /// Carries a userfaultfd. Requests its features: events for forks and changes of mappings.
  case negotiate
  /// Carries a userfaultfd. Requests these features, and asynchronous write protection.
  case negotiateTracking = "negotiate tracking"
}

/// The service's answer: one packet, with the descriptor if one was requested.
public enum UserfaultReply: Hashable, Sendable {
  case done
  /// A system call failed, with this error number as in errno(3).
  case failed(Int32)
  case refused(Refusal)

  public enum Refusal: String, CaseIterable, Sendable {
    /// The service is busy with other connections of the same user.
    case busy
    /// The peer isn't in the service's user namespace.
    case namespace
    /// The packet isn't a request, or has too many or too few descriptors.
    case request
    /// The descriptor isn't a userfaultfd.
    case descriptor
  }

  /// The greatest length of a request or reply in bytes. Longer packets are cut there, and are no
  /// messages then.
  public static let maxLength = 64

  public var text: String {
    switch self {
    case .done: "done"
    case .failed(let code): "failed \(code)"
    case .refused(let refusal): "refused \(refusal.rawValue)"
    }
  }

  /// Parses the form of `text`. It is `nil` for any other text.
  public init?(_ text: String) {
    let fields = text.split(separator: " ", omittingEmptySubsequences: false)
    switch (fields.first, fields.count) {
    case ("done", 1): self = .done
    case ("failed", 2):
      guard let code = Int32(fields[1]), code > 0, String(code) == fields[1] else { return nil }
      self = .failed(code)
    case ("refused", 2):
      guard let refusal = Refusal(rawValue: String(fields[1])) else { return nil }
      self = .refused(refusal)
    default: return nil
    }
  }
}
