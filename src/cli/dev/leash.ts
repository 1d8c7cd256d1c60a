/**
 * Loaded into every child of `dev` before anything else. The child has a channel to its parent that carries
 * nothing: when it closes, the parent is gone, however it ended, and the child ends too.
 */
const FORCED_EXIT_MS = 5_000;

process.on('disconnect', () => {
  process.kill(process.pid, 'SIGTERM');
  setTimeout(() => process.exit(1), FORCED_EXIT_MS).unref();
});
process.channel?.unref();
