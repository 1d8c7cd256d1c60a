import type { ClusterState, CommandResult } from '../state/index.ts';
import { done, type Outcome, type Sliced } from './outcome.ts';

/** The entry's index is the session's number: unique over the life of the log. */
export function openSession(state: ClusterState): Outcome {
  state.sessions.open(state.appliedIndex);
  return done({ session: state.appliedIndex });
}

/**
 * Runs a request at most once: a retry gets the first answer, and one that can no longer be told from a retry
 * is refused without running.
 */
export function* once(
  state: ClusterState,
  request: { readonly session: number; readonly n: number } | null,
  run: () => Sliced<CommandResult>,
): Sliced<CommandResult> {
  if (request === null) return yield* run();
  const { session, n } = request;
  const known = state.sessions.find(session, n);
  if (known === 'expired') {
    const message = `request ${session}:${n} is outside its session's window: open a session, and look whether it took effect`;
    return { ok: false, revision: state.revision, error: { code: 'session_expired', message } };
  }
  state.sessions.touch(session, state.appliedIndex);
  if (known !== 'new') return known;
  const result = yield* run();
  state.sessions.keep(session, n, result);
  return result;
}
