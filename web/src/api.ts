// Types of the dashboard's API. Written by `python -m tools.dashboard_types`; not edited.

export interface BudgetRecord {
  name: string;
  allowed: number;
}

export interface CapacityRecord {
  replicas: number;
  bound: number | null;
  reached: string;
  nodes: NodeShare[];
  templates: TemplateShare[];
  stop: StopRecord | null;
  oneMore: RemedyRecord[];
}

export interface ConfigurationAnswer {
  schema: string;
  state: DashboardState;
  configuration: Record<string, unknown>;
  profiles: ProfilePoints[];
  featureGates: string[];
  times: PluginTime[];
  failures: Record<string, number>;
  telemetry: TelemetryRow[];
}

export interface CostRecord {
  perHour: number;
  currency: string;
}

export interface DashboardState {
  source: string;
  at: string;
  nodes: number;
  pods: number;
  leads: boolean;
  everything: boolean;
  command: string[];
  version: string;
}

export interface DeadlockRecord {
  budget: string;
  message: string;
  pods: string[];
}

export interface DifferencesAnswer {
  schema: string;
  state: DashboardState;
  shadows: boolean;
  counts: Record<string, number>;
  meanings: Record<string, string>;
  findings: Finding[];
}

export interface Eviction {
  node: string;
  victims: string[];
}

export interface EvictionRecord {
  node: string;
  pods: string[];
}

export interface ExplainAnswer {
  schema: string;
  state: DashboardState;
  explanation: Explanation;
  outcome: string;
}

export interface Explanation {
  pod: string;
  profile: string;
  selected: string | null;
  message: string | null;
  preemption: Eviction | null;
  nodes: NodeAnswer[];
  preemption_ties?: Eviction[];
  outcome?: "FITS" | "FITS_NOWHERE" | "HELD" | "WAITS" | "GANG_WAITS" | "FAILED";
  remedies?: Remedy[];
  gang?: GangExplanation | null;
  notes?: string[];
  warnings?: string[];
  models?: ([string, string, string, number])[];
  nominated?: string;
  kubernetes_version?: string;
}

export interface Finding {
  outcome: string;
  pod: string;
  podium?: string;
  other?: string;
  points?: number;
  reason?: string;
}

export interface FitRecord {
  pods: PodRecord[];
  summary: Record<string, number>;
  cost?: CostRecord | null;
  nodes?: string[];
  drained?: boolean;
  rounds?: number;
  deadlock?: DeadlockRecord[];
}

export interface GangExplanation {
  group: string;
  minimum: number;
  members: number;
  assigned: number;
  would_fit: number;
  starts: boolean;
  objection?: string;
  obstacles?: Obstacle[];
  remedies?: Remedy[];
}

export interface GangRow {
  key: string;
  minimum: number;
  members: number;
  assigned: number;
  waiting: WaitingPodRow[];
}

export interface GroupsAnswer {
  schema: string;
  state: DashboardState;
  gangs: GangRow[];
  quotas: QuotaRow[];
  readsQuotas: boolean;
}

export interface MeasuredColumn {
  query: string;
  source: string;
  values: (number | null)[];
}

export interface MeasuredValue {
  query: string;
  source: string;
  value: number;
  ageSeconds: number;
}

export interface NameMatch {
  kind: string;
  name: string;
  detail: string;
}

export interface NoAnswer {
  error: string;
  login: boolean;
}

export interface NodeAnswer {
  name: string;
  feasible: boolean;
  plugin?: string | null;
  reasons?: string[];
  scores?: Record<string, number>;
  total?: number | null;
  devices?: (Record<string, string>)[] | null;
}

export interface NodeDetails {
  schema: string;
  state: DashboardState;
  node: string;
  cordoned: boolean;
  ready: boolean;
  labels: Record<string, string>;
  taints: string[];
  conditions: string[];
  resources: NodeResource[];
  podCount: number;
  allowedPods: number;
  pods: NodePodRow[];
  hiddenPods: number;
  hiddenRequests: Record<string, number>;
  measured: MeasuredValue[];
  devices: NodeDevice[];
  timeline: PodEntry[];
}

export interface NodeDevice {
  driver: string;
  pool: string;
  device: string;
  claim: string;
}

export interface NodeLabelColumn {
  key: string;
  values: string[];
  of: number[];
}

export interface NodePodRow {
  pod: string;
  requests: Record<string, number>;
  priority: number;
  owner: string;
  assumed: boolean;
}

export interface NodeResource {
  name: string;
  allocatable: number;
  requested: number;
}

export interface NodeShare {
  node: string;
  replicas: number;
  leftOver: Record<string, string>;
}

export interface Obstacle {
  message: string;
  pods: string[];
}

export interface PlacedRecord {
  node?: string | null;
  ties?: string[];
  total?: number | null;
  message?: string | null;
}

export interface PluginNumber {
  name: string;
  text: string;
  labels: Record<string, string>;
  value: number;
}

export interface PluginPlace {
  name: string;
  weight: number | null;
}

export interface PluginTime {
  plugin: string;
  step: string;
  calls: number;
  meanSeconds: number;
  p50Seconds: number | null;
  p99Seconds: number | null;
}

export interface PodDetails {
  schema: string;
  state: DashboardState;
  pod: string;
  node: string;
  nominated: string;
  phase: string;
  created: string;
  owner: string;
  priority: number;
  scheduler: string;
  requests: Record<string, number>;
  labels: Record<string, string>;
  waiting: WaitingPodRow | null;
  timeline: PodEntry[];
}

export interface PodEntry {
  number: number;
  time: string;
  pod: string;
  kind: string;
  where: string;
  cause: string;
  object: string;
  attempts: number;
}

export interface PodRecord {
  pod: string;
  origin: string;
  before?: PlacedRecord;
  after: PlacedRecord;
  verdict: string;
  message?: string;
  reasons?: RefusalRecord[];
  remedies?: RemedyRecord[];
  notes?: string[];
  victims?: EvictionRecord;
  flag?: string;
  budgets?: BudgetRecord[];
  round?: number;
}

export interface PointPlugins {
  point: string;
  plugins: PluginPlace[];
}

export interface PolicyAnswer {
  schema: string;
  state: DashboardState;
  policies: PolicyRow[];
}

export interface PolicyRow {
  profile: string;
  plugin: string;
  arguments: Record<string, unknown>;
  numbers: PluginNumber[];
}

export interface ProfilePoints {
  name: string;
  points: PointPlugins[];
}

export interface QosAnswer {
  schema: string;
  state: DashboardState;
  served: boolean;
  rows: (Record<string, unknown>)[];
}

export interface QueueAnswer {
  schema: string;
  state: DashboardState;
  counts: QueueCounts;
  groups: ReasonGroup[];
  pods: WaitingPodRow[];
  hidden: number;
}

export interface QueueCounts {
  active: number;
  backoff: number;
  unschedulable: number;
  gated: number;
  permit: number;
}

export interface QuotaRow {
  key: string;
  used: Record<string, unknown>;
  min: Record<string, unknown>;
  max: Record<string, unknown>;
}

export interface ReasonGroup {
  reason: string;
  plugins: string[];
  count: number;
  pods: string[];
}

export interface RefusalRecord {
  plugin: string;
  reason: string;
  nodes: number;
}

export interface Remedy {
  node: string;
  changes: string[];
}

export interface RemedyRecord {
  node: string;
  changes: string[];
}

export interface ResourceColumn {
  name: string;
  allocatable: number[];
  requested: number[];
}

export interface SearchAnswer {
  schema: string;
  matches: NameMatch[];
}

export interface Snapshot {
  schema: string;
  state: DashboardState;
  number: number;
  names: string[];
  pods: number[];
  allowedPods: number[];
  flags: number[];
  resources: ResourceColumn[];
  labels: NodeLabelColumn[];
  measured: MeasuredColumn[];
  counts: QueueCounts;
  recent: PodEntry[];
}

export interface StateRecord {
  source: string;
  at: string | null;
  resourceVersion: string | null;
  kubernetesVersion: string | null;
  nodes: number;
  pods: number;
  missingKinds: string[];
  notSimulated: string[];
}

export interface StopRecord {
  message: string | null;
  reasons: RefusalRecord[];
  first: string;
  notes: string[];
}

export interface TelemetryRow {
  source: string;
  address: string;
  query: string;
  problem: string | null;
  nodes: number;
  oldestSeconds: number | null;
}

export interface TemplateShare {
  name: string;
  share: number;
  replicas: number;
}

export interface Tick {
  number: number;
  at: string;
  reset: boolean;
  counts: QueueCounts;
  podsPlaced: number;
  bound: number;
  failed: number;
  leads: boolean;
  rows: number[];
  pods: number[];
  flags: number[];
  requested: (number[])[];
  entries: PodEntry[];
  more: number;
}

export interface TimelineAnswer {
  schema: string;
  state: DashboardState;
  begins: string;
  ends: string;
  bytesUsed: number;
  bytesAllowed: number;
  points: TimelinePoint[];
  marks: PodEntry[];
}

export interface TimelinePoint {
  time: string;
  waiting: number;
  placed: number;
  bound: number;
  failed: number;
}

export interface WaitingPodRow {
  position: number | null;
  pod: string;
  scheduler: string;
  priority: number;
  queue: string;
  attempts: number | null;
  since: string;
  nextTry: string | null;
  waitsFor: WaitsFor[];
  message: string | null;
  owner: string;
  reason: string;
}

export interface WaitsFor {
  plugin: string;
  events: string[];
}
