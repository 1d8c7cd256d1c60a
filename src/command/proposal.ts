export interface ProposeOptions {
  /** From now. */
  readonly deadlineMs: number;
  readonly request?: { readonly session: number; readonly n: number };
  /** Only if this node itself leads in that term, else `no_leader`: a deposed leader's decision is never passed on. */
  readonly inTerm?: number;
}

export interface Proposed {
  /** The state's revision right after this command. */
  readonly revision: number;
  readonly value: unknown;
}
