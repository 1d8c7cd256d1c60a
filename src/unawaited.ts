/**
 * Takes the promise of work that nobody waits for and that handles its own failures. The linter allows no other way to
 * leave a promise alone. If the work rejects all the same, that is an internal error: it stays an unhandled rejection,
 * which ends a node or a broker with a fatal line (`own-faults.ts`) instead of being lost.
 */
export function unawaited(_work: Promise<unknown>): void {}
