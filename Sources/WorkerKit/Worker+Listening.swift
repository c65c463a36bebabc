extension Worker {
  /// Calls `body` on each memory warning while `object` exists. The subscription doesn't keep the
  /// object alive.
  ///
  /// ```swift
  /// worker.onMemoryWarning(of: self) { photos in photos.dropThumbnails() }
  /// ```
  ///
  /// The closures of all subscriptions are called one after another, and the daemon's answer waits
  /// for all of them. The closure doesn't run on an actor: if the object belongs to one, await its
  /// methods in `body`.
  ///
  /// - Returns: the subscription. You need it only to end the calls while the object exists.
  @discardableResult public func onMemoryWarning<Object: AnyObject & Sendable>(
    of object: Object, _ body: @escaping @Sendable (Object) async -> Void
  ) -> Subscription {
    subscribe(object, body) { event in
      if case .didReceiveMemoryWarning = event { true } else { false }
    }
  }

  /// Calls `body` each time the worker has entered the background, while `object` exists.
  ///
  /// The rules are those of `onMemoryWarning(of:_:)`: the object isn't kept alive, the closures are
  /// called one after another, and the daemon's answer waits for all of them.
  ///
  /// - Returns: the subscription. You need it only to end the calls while the object exists.
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
