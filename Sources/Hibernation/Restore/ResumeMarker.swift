import Linux

/// A marker that a worker's memory is back from an image, and that the worker may have run since.
/// It is stored with the worker's cgroup.
///
/// Usually the worker's record and the removal of the image say that. If one of the two can't be
/// written (a full or failing disk, a file system that became read-only), the next daemon would end
/// the worker, or restore its memory of that time. The marker names the image by its mark, so it
/// says nothing about a later image.
public enum ResumeMarker {
  /// Returns the image from which the worker was last resumed, if that was marked.
  ///
  /// - Throws: an error if that can't be found out.
  public static func read(of cgroup: WorkerCgroup?) throws(SystemCallError) -> ImageMark? {
    try cgroup?.note.flatMap(ImageMark.init(text:))
  }

  /// Writes the marker.
  ///
  /// - Throws: `intact`, with the reason why the marker is needed.
  static func write(
    _ image: ImageReader, of target: HibernationTarget, because reason: String
  ) throws(HibernationError) {
    guard let cgroup = target.cgroup, let mark = image.mark else {
      throw HibernationError(.writingBack, "\(reason), and it has no cgroup to note its resume in")
    }
    do throws(SystemCallError) { try cgroup.write(note: mark.text) } catch {
      throw HibernationError(
        .writingBack, "\(reason), and its resume can't be noted in its cgroup: \(error)")
    }
  }

  /// Removes an image that doesn't count, because all of the worker's memory is in place. If it
  /// can't be removed (its file system may have become read-only), the worker gets the marker.
  /// Otherwise the next daemon could write the image back to a worker that has run since: one that
  /// waits in its main loop again has the registers that it had then.
  static func discardImage(at path: String, of target: HibernationTarget) {
    // No daemon writes back an image that can't be read.
    guard !discardFile(path), !isAbsent(path), let image = try? ImageReader(alone: path) else {
      return
    }
    // Without a cgroup nothing else can be done.
    try? write(image, of: target, because: "can't remove \(path)")
  }

  /// Removes the marker, before the image counts again.
  static func clear(of target: HibernationTarget) throws(HibernationError) {
    try attempt(.writingBack) { try target.cgroup?.write(note: nil) }
  }
}

extension ImageReader {
  /// True if the worker's memory was restored from this image, and only the removal of the image
  /// failed. While its pages are filled in the background the image still counts.
  func wasRestored(to target: HibernationTarget) throws(SystemCallError) -> Bool {
    guard progress != .filling, let mark else { return false }
    return try ResumeMarker.read(of: target.cgroup) == mark
  }
}
