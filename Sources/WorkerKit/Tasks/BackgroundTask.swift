/// Runs work that the worker's suspension must not interrupt, such as finishing an upload.
///
/// ```swift
/// try await withBackgroundTask(named: "upload", limit: .seconds(60)) {
///   try await upload(entry)
/// } onExpiration: {
///   await drafts.keep(entry)
/// }
/// ```
///
/// While the operation runs, the daemon doesn't suspend this worker, until the limit is reached.
/// The limit is the policy's (`background: task_limit`) or `limit`, whichever is shorter. At the
/// limit the operation's task is cancelled and `onExpiration` is called; it has until
/// `Worker.deadline` to save what it can.
///
/// The background task ends when the operation ends, by a result or an error, so it can't be left
/// open. Two tasks with the same name stay two: the daemon knows the second one as `NAME #2`.
///
/// Without a daemon the operation just runs, without a limit.
///
/// - Parameters:
///   - name: What the work is, for `dormouse status` and its reports.
///   - limit: The time for which the work may keep the worker awake; `nil` means as long as the
///     policy allows.
///   - worker: The worker that is kept awake.
///   - operation: The work. It runs in a task of its own, which is cancelled with the caller's
///     task. An operation that doesn't check for cancellation keeps this call waiting after the
///     limit, but doesn't keep the worker awake.
///   - onExpiration: Called at the limit. It may run at the same time as the cancelled operation.
/// - Returns: the operation's result.
/// - Throws: the operation's error.
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
