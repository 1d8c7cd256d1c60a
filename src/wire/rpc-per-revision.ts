import type { StateView } from '../state/index.ts';

/** What walks the whole state is taken once a revision, however often it is asked for. The value must not be changed. */
export function perRevision<T>(take: (state: StateView) => T): (state: StateView) => T {
  const taken = new WeakMap<StateView, { readonly revision: number; readonly value: T }>();
  return (state) => {
    const { revision } = state;
    const last = taken.get(state);
    if (last?.revision === revision) return last.value;
    const value = take(state);
    taken.set(state, { revision, value });
    return value;
  };
}
