export { decodeCommand, encodeCommand } from './codec.ts';
export { clusterProblem, clusterProblems, type ClusterRows } from './cluster-rows.ts';
export * from './limits.ts';
export {
  idProblem,
  parseResource,
  parseShard,
  printable,
  quote,
  resourceNameProblem,
  type ShardName,
} from './names.ts';
export type { Problem } from './problem.ts';
export type { Proposed, ProposeOptions } from './proposal.ts';
export { fromRaft, Proposer, type ProposalPath } from './proposer.ts';
export { UnknownCommand } from './read-command.ts';
export { parseRequestId } from './request-id.ts';
export * from './types.ts';
export {
  brokerProblem,
  commandProblem,
  labelsProblem,
  notAShard,
  policyProblem,
  resourceProblem,
} from './validate.ts';
