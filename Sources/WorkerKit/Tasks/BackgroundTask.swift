/// Does work that must not be interrupted by the worker's suspension, such as finishing an upload.
///
/// ```swift
/// try await withBackgroundTask(named: "upload", limit: .seconds(60)) {
///   try await upload(entry)
/// } onExpiration: {
///   await drafts.keep(entry)
/// }
/// ```
///
/// While it runs, the daemon doesn't suspend this worker, until the limit is reached: the policy's
/// (`background: task_limit`), or the smaller one here. Then the operation's task is cancelled, and
/// `onExpiration` called; it has until `Worker.deadline` to save what there is. The background task ends when
/// the operation does, however that comes about; it can't be left open. Two of the same name are two tasks:
/// the daemon knows the second as `NAME #2`.
///
/// Without a daemon the operation just runs, without a limit.
///
/// - Parameters:
///   - name: what the work is, for `dormouse status` and its reports.
///   - limit: how long it may keep the worker awake; `nil`: as long as the policy allows.
///   - operation: runs in a task of its own, whose cancellation follows the caller's. Cancellation asks; an
///     operation that doesn't look keeps the scope open, but the worker awake no longer.
///   - onExpiration: may run at the same time as the operation that it has cancelled.
public func withBackgroundTask<Success: Sendable, Failure: Error>(
  named name: String, limit: Duration? = nil, worker: Worker = .shared,
  operation: @escaping @Sendable () async throws(Failure) -> Success,
  onExpiration: @escaping @Sendable () async -> Void = {}
) async throws(Failure) -> Success {
  let unique = worker.tasks.begin(name, limit: limit, onExpiration: onExpiration)
  defer { worker.tasks.end(unique) }
  let task = Task<Result<Success, Failure>, Never> {
    do throws(Failure) {
      return .success(try await operation())
    } catch { return .failure(error) }
  }
  worker.tasks.setCancellation(of: unique) { task.cancel() }
  let result = await withTaskCancellationHandler {
    await task.value
  } onCancel: {
    task.cancel()
  }
  return try result.get()
}
