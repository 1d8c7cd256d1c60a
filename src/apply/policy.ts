import type { Command } from '../command/index.ts';
import type { ClusterState } from '../state/index.ts';
import { done, refuse, type Outcome } from './outcome.ts';

export function setPolicy(state: ClusterState, command: Extract<Command, { type: 'setPolicy' }>): Outcome {
  const { expectedRevision, patch } = command;
  if (expectedRevision !== null && expectedRevision !== state.policyRevision) {
    return refuse(
      'conflict',
      `the policy is at revision ${state.policyRevision}, not ${expectedRevision}: read it again`,
    );
  }
  state.setPolicy({ ...state.policy, ...patch });
  return done({ policy: state.policy });
}
