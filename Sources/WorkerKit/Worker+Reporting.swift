import JSONLines
import WorkerProtocol

// What a worker reports to the daemon. What still holds is sent again to each later daemon.

extension Worker {
  /// Reports that the worker has started and can be used, as `READY=1` at `NOTIFY_SOCKET` does.
  public func ready() {
    connection?.update { session in
      session.isReady = true
      return [.ready]
    }
  }

  /// Asks the daemon not to suspend this worker (`true`), or withdraws that (`false`).
  ///
  /// For work that ends, prefer `withBackgroundTask`: it can't be left open by mistake.
  public func hold(_ on: Bool) {
    connection?.update { session in
      guard session.holds != on else { return [] }
      session.holds = on
      session.hasHeld = true
      return [.hold(on)]
    }
  }

  /// Sets the status that `dormouse status` shows beside the worker's name: one short line. The
  /// daemon keeps 512 bytes of it.
  public func setStatus(_ text: String) {
    // A line longer than the protocol's limit would end this connection, and each later one.
    let fits = WorkerMessage.status(text).line.count <= WorkerProtocol.maxLine
    let text = fits ? text : WorkerProtocol.shown(text)
    connection?.update { session in
      session.status = text
      return [.status(text)]
    }
  }

  /// Sets the snapshot that is shown of this worker while it sleeps. It replaces the one before.
  ///
  /// - Returns: false if the snapshot is too large, and then the one before stays. A line of the
  ///   protocol has at most 262,144 bytes, and an image becomes a third longer in it.
  @discardableResult public func setSnapshot(_ snapshot: Snapshot) -> Bool {
    let message = WorkerMessage.snapshot(snapshot.message)
    guard message.line.count <= WorkerProtocol.maxLine else { return false }
    connection?.update { session in
      session.snapshot = snapshot.message
      return [message]
    }
    return true
  }
}

/// What is shown of a worker while it sleeps: a text or an image, such as its last screen.
public enum Snapshot: Sendable, Hashable {
  /// A text, such as a summary of what waits.
  case text(String)
  /// An image. `mime` is its type, such as `image/png`; `bytes` is the content of the file.
  case image(mime: String, bytes: [UInt8])

  var message: WorkerMessage.Snapshot {
    switch self {
    case .text(let text): .text(text)
    case .image(let mime, let bytes): .image(mime: mime, base64: Base64.encode(bytes))
    }
  }
}
