extension Worker {
  /// Calls `body` on each memory warning, as long as `object` lives; it isn't kept alive by it.
  ///
  /// ```swift
  /// worker.onMemoryWarning(of: self) { photos in photos.dropThumbnails() }
  /// ```
  ///
  /// The closures are called one after the other; the daemon's answer waits for all of them. An object that
  /// belongs to an actor awaits its own methods in `body`.
  @discardableResult public func onMemoryWarning<Object: AnyObject & Sendable>(
    of object: Object, _ body: @escaping @Sendable (Object) async -> Void
  ) -> Subscription {
    subscribe(object, body) { event in
      if case .didReceiveMemoryWarning = event { true } else { false }
    }
  }

  /// The same whenever the worker has entered the background.
  @discardableResult public func onEnterBackground<Object: AnyObject & Sendable>(
    of object: Object, _ body: @escaping @Sendable (Object) async -> Void
  ) -> Subscription {
    subscribe(object, body) { $0 == .didEnterBackground }
  }

  private func subscribe<Object: AnyObject & Sendable>(
    _ object: Object, _ body: @escaping @Sendable (Object) async -> Void,
    to isWanted: @escaping @Sendable (WorkerEvent) -> Bool
  ) -> Subscription {
    let id = listeners.subscribers.add { [weak object] event in
      guard let object else { return false }
      if isWanted(event) { await body(object) }
      return true
    }
    return Subscription(id: id, subscribers: listeners.subscribers)
  }
}
