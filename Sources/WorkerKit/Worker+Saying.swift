import JSONLines
import WorkerProtocol

// What a worker reports of itself. A daemon that comes later gets again what still holds.

extension Worker {
  /// The worker has started, and can be used: like `READY=1` at `NOTIFY_SOCKET`.
  public func ready() {
    connection?.say { said in
      said.isReady = true
      return [.ready]
    }
  }

  /// Asks the daemon not to suspend this worker now, or withdraws that. For work with an end, better use
  /// `withBackgroundTask`, which can't be forgotten.
  public func hold(_ on: Bool) {
    connection?.say { said in
      guard said.holds != on else { return [] }
      said.holds = on
      said.hasHeld = true
      return [.hold(on)]
    }
  }

  /// The status that `dormouse status` shows beside the worker's name: a short line, of which 512 bytes are
  /// kept.
  public func setStatus(_ text: String) {
    // A line that is too long for the protocol would end this connection, and each later one.
    let fits = WorkerMessage.status(text).line.count <= WorkerProtocol.maxLine
    let text = fits ? text : WorkerProtocol.shown(text)
    connection?.say { said in
      said.status = text
      return [.status(text)]
    }
  }

  /// The snapshot that is shown of this worker while it sleeps. The last one counts.
  ///
  /// - Returns: false if it is too large: a line of the protocol has 262,144 bytes, and an image becomes a
  ///   third longer in it. Then nothing has changed.
  @discardableResult public func setSnapshot(_ snapshot: Snapshot) -> Bool {
    let message = WorkerMessage.snapshot(snapshot.said)
    guard message.line.count <= WorkerProtocol.maxLine else { return false }
    connection?.say { said in
      said.snapshot = snapshot.said
      return [message]
    }
    return true
  }
}

/// What is shown of a worker while it sleeps: its last screen, or a text about what waits.
public enum Snapshot: Sendable, Hashable {
  case text(String)
  /// `mime`: such as `image/png`.
  case image(mime: String, bytes: [UInt8])

  var said: WorkerMessage.Snapshot {
    switch self {
    case .text(let text): .text(text)
    case .image(let mime, let bytes): .image(mime: mime, base64: Base64.encode(bytes))
    }
  }
}
