"""Lists the functions that Kubernetes gives to CEL expressions: the identifier of each overload, and its signature.

    contains_string string.contains(string) bool        a member function of strings
    size_list size(list(A)) int                         a function of lists, whatever their elements are

The order of a function's overloads is the order in which a checker tries them. Costs and implementations are found by
the identifiers. The functions of the authorizer are here because errors name them; no selector has an authorizer.
"""

from typing import Final

_STANDARD: Final = """
logical_not !_(bool) bool
negate_double -_(double) double
negate_int64 -_(int) int
in_list @in(A, list(A)) bool
in_map @in(A, map(A, B)) bool
not_strictly_false @not_strictly_false(bool) bool
not_equals _!=_(A, A) bool
modulo_int64 _%_(int, int) int
modulo_uint64 _%_(uint, uint) uint
logical_and _&&_(bool, bool) bool
multiply_double _*_(double, double) double
multiply_int64 _*_(int, int) int
multiply_uint64 _*_(uint, uint) uint
add_bytes _+_(bytes, bytes) bytes
add_double _+_(double, double) double
add_duration_duration _+_(duration, duration) duration
add_duration_timestamp _+_(duration, timestamp) timestamp
add_timestamp_duration _+_(timestamp, duration) timestamp
add_int64 _+_(int, int) int
add_list _+_(list(A), list(A)) list(A)
add_string _+_(string, string) string
add_uint64 _+_(uint, uint) uint
subtract_double _-_(double, double) double
subtract_duration_duration _-_(duration, duration) duration
subtract_int64 _-_(int, int) int
subtract_timestamp_duration _-_(timestamp, duration) timestamp
subtract_timestamp_timestamp _-_(timestamp, timestamp) duration
subtract_uint64 _-_(uint, uint) uint
divide_double _/_(double, double) double
divide_int64 _/_(int, int) int
divide_uint64 _/_(uint, uint) uint
equals _==_(A, A) bool
conditional _?_:_(bool, A, A) A
index_list _[_](list(A), int) A
index_map _[_](map(A, B), A) B
logical_or _||_(bool, bool) bool
bool_to_bool bool(bool) bool
string_to_bool bool(string) bool
bytes_to_bytes bytes(bytes) bytes
string_to_bytes bytes(string) bytes
contains_string string.contains(string) bool
double_to_double double(double) double
int64_to_double double(int) double
string_to_double double(string) double
uint64_to_double double(uint) double
duration_to_duration duration(duration) duration
int64_to_duration duration(int) duration
string_to_duration duration(string) duration
to_dyn dyn(A) dyn
ends_with_string string.endsWith(string) bool
timestamp_to_day_of_month_1_based timestamp.getDate() int
timestamp_to_day_of_month_1_based_with_tz timestamp.getDate(string) int
timestamp_to_day_of_month timestamp.getDayOfMonth() int
timestamp_to_day_of_month_with_tz timestamp.getDayOfMonth(string) int
timestamp_to_day_of_week timestamp.getDayOfWeek() int
timestamp_to_day_of_week_with_tz timestamp.getDayOfWeek(string) int
timestamp_to_day_of_year timestamp.getDayOfYear() int
timestamp_to_day_of_year_with_tz timestamp.getDayOfYear(string) int
timestamp_to_year timestamp.getFullYear() int
timestamp_to_year_with_tz timestamp.getFullYear(string) int
timestamp_to_hours timestamp.getHours() int
timestamp_to_hours_with_tz timestamp.getHours(string) int
duration_to_hours duration.getHours() int
timestamp_to_milliseconds timestamp.getMilliseconds() int
timestamp_to_milliseconds_with_tz timestamp.getMilliseconds(string) int
duration_to_milliseconds duration.getMilliseconds() int
timestamp_to_minutes timestamp.getMinutes() int
timestamp_to_minutes_with_tz timestamp.getMinutes(string) int
duration_to_minutes duration.getMinutes() int
timestamp_to_month timestamp.getMonth() int
timestamp_to_month_with_tz timestamp.getMonth(string) int
timestamp_to_seconds timestamp.getSeconds() int
timestamp_to_seconds_tz timestamp.getSeconds(string) int
duration_to_seconds duration.getSeconds() int
int64_to_int64 int(int) int
double_to_int64 int(double) int
duration_to_int64 int(duration) int
string_to_int64 int(string) int
timestamp_to_int64 int(timestamp) int
uint64_to_int64 int(uint) int
matches matches(string, string) bool
matches_string string.matches(string) bool
size_bytes size(bytes) int
bytes_size bytes.size() int
size_list size(list(A)) int
list_size list(A).size() int
size_map size(map(A, B)) int
map_size map(A, B).size() int
size_string size(string) int
string_size string.size() int
starts_with_string string.startsWith(string) bool
string_to_string string(string) string
bool_to_string string(bool) string
bytes_to_string string(bytes) string
double_to_string string(double) string
duration_to_string string(duration) string
int64_to_string string(int) string
timestamp_to_string string(timestamp) string
uint64_to_string string(uint) string
timestamp_to_timestamp timestamp(timestamp) timestamp
int64_to_timestamp timestamp(int) timestamp
string_to_timestamp timestamp(string) timestamp
type type(A) type(A)
uint64_to_uint64 uint(uint) uint
double_to_uint64 uint(double) uint
int64_to_uint64 uint(int) uint
string_to_uint64 uint(string) uint
"""
_STRINGS: Final = """
string_char_at_int string.charAt(int) string
string_format string.format(list(dyn)) string
string_index_of_string string.indexOf(string) int
string_index_of_string_int string.indexOf(string, int) int
list_join list(string).join() string
list_join_string list(string).join(string) string
string_last_index_of_string string.lastIndexOf(string) int
string_last_index_of_string_int string.lastIndexOf(string, int) int
string_lower_ascii string.lowerAscii() string
string_replace_string_string string.replace(string, string) string
string_replace_string_string_int string.replace(string, string, int) string
string_split_string string.split(string) list(string)
string_split_string_int string.split(string, int) list(string)
strings_quote strings.quote(string) string
string_substring_int string.substring(int) string
string_substring_int_int string.substring(int, int) string
string_trim string.trim() string
string_upper_ascii string.upperAscii() string
"""
_LISTS: Final = """
@mapInsert_map_key_value cel.@mapInsert(map(K, V), K, V) map(K, V)
@mapInsert_map_map cel.@mapInsert(map(K, V), map(K, V)) map(K, V)
list_distinct list(T).distinct() list(T)
list_flatten list(list(T)).flatten() list(T)
list_flatten_int list(dyn).flatten(int) list(dyn)
lists_range lists.range(int) list(int)
list_reverse list(T).reverse() list(T)
list_sets_contains_list sets.contains(list(T), list(T)) bool
list_sets_equivalent_list sets.equivalent(list(T), list(T)) bool
list_sets_intersects_list sets.intersects(list(T), list(T)) bool
list_slice list(T).slice(int, int) list(T)
"""
_OPTIONALS: Final = """
select_optional_field _?._(dyn, string) optional(V)
list_optindex_optional_int _[?_](list(V), int) optional(V)
optional_list_optindex_optional_int _[?_](optional(list(V)), int) optional(V)
map_optindex_optional_value _[?_](map(K, V), K) optional(V)
optional_map_optindex_optional_value _[?_](optional(map(K, V)), K) optional(V)
optional_list_index_int _[_](optional(list(V)), int) optional(V)
optional_map_index_value _[_](optional(map(K, V)), K) optional(V)
list_first list(V).first() optional(V)
optional_hasValue optional(V).hasValue() bool
list_last list(V).last() optional(V)
optional_none optional.none() optional(V)
optional_of optional.of(V) optional(V)
optional_ofNonZeroValue optional.ofNonZeroValue(V) optional(V)
optional_unwrap optional.unwrap(list(optional(V))) list(V)
optional_or_optional optional(V).or(optional(V)) optional(V)
optional_orValue_value optional(V).orValue(V) V
optional_unwrapOpt list(optional(V)).unwrapOpt() list(V)
optional_value optional(V).value() V
"""
_KUBERNETES: Final = """
quantity_add Quantity.add(Quantity) Quantity
quantity_add_int Quantity.add(int) Quantity
quantity_get_float Quantity.asApproximateFloat() double
quantity_get_int Quantity.asInteger() int
string_to_cidr cidr(string) CIDR
quantity_compare_to Quantity.compareTo(Quantity) int
semver_compare_to Semver.compareTo(Semver) int
cidr_contains_cidr_string CIDR.containsCIDR(string) bool
cidr_contains_cidr CIDR.containsCIDR(CIDR) bool
cidr_contains_ip_string CIDR.containsIP(string) bool
cidr_contains_ip_ip CIDR.containsIP(IP) bool
ip_family IP.family() int
string_find_string string.find(string) string
string_find_all_string string.findAll(string) list(string)
string_find_all_string_int string.findAll(string, int) list(string)
format.byte format.byte() NamedFormat
format.date format.date() NamedFormat
format.datetime format.datetime() NamedFormat
format.dns1035Label format.dns1035Label() NamedFormat
format.dns1035LabelPrefix format.dns1035LabelPrefix() NamedFormat
format.dns1123Label format.dns1123Label() NamedFormat
format.dns1123LabelPrefix format.dns1123LabelPrefix() NamedFormat
format.dns1123Subdomain format.dns1123Subdomain() NamedFormat
format.dns1123SubdomainPrefix format.dns1123SubdomainPrefix() NamedFormat
format.labelValue format.labelValue() NamedFormat
format-named format.named(string) optional(NamedFormat)
format.qualifiedName format.qualifiedName() NamedFormat
format.uri format.uri() NamedFormat
format.uuid format.uuid() NamedFormat
url_get_escaped_path URL.getEscapedPath() string
url_get_host URL.getHost() string
url_get_hostname URL.getHostname() string
url_get_port URL.getPort() string
url_get_query URL.getQuery() map(string, list(string))
url_get_scheme URL.getScheme() string
list_a_index_of_int list(A).indexOf(A) int
string_to_ip ip(string) IP
cidr_ip CIDR.ip() IP
ip_is_canonical ip.isCanonical(string) bool
is_cidr isCIDR(string) bool
ip_is_global_unicast IP.isGlobalUnicast() bool
quantity_is_greater_than Quantity.isGreaterThan(Quantity) bool
semver_is_greater_than Semver.isGreaterThan(Semver) bool
is_ip isIP(string) bool
quantity_is_integer Quantity.isInteger() bool
quantity_is_less_than Quantity.isLessThan(Quantity) bool
semver_is_less_than Semver.isLessThan(Semver) bool
ip_is_link_local_multicast IP.isLinkLocalMulticast() bool
ip_is_link_local_unicast IP.isLinkLocalUnicast() bool
ip_is_loopback IP.isLoopback() bool
is_quantity_string isQuantity(string) bool
is_semver_string isSemver(string) bool
is_semver_string_bool isSemver(string, bool) bool
is_url_string isURL(string) bool
ip_is_unspecified IP.isUnspecified() bool
list_a_last_index_of_int list(A).lastIndexOf(A) int
semver_major Semver.major() int
cidr_masked CIDR.masked() CIDR
semver_minor Semver.minor() int
semver_patch Semver.patch() int
cidr_prefix_length CIDR.prefixLength() int
string_to_quantity quantity(string) Quantity
string_to_semver semver(string) Semver
string_bool_to_semver semver(string, bool) Semver
quantity_sign sign(Quantity) int
ip_to_string string(IP) string
cidr_to_string string(CIDR) string
quantity_sub Quantity.sub(Quantity) Quantity
quantity_sub_int Quantity.sub(int) Quantity
string_to_url url(string) URL
format-validate NamedFormat.validate(string) optional(list(string))
"""
_AUTHORIZER: Final = """
decision_allowed authz.Decision.allowed() bool
pathcheck_check authz.PathCheck.check(string) authz.Decision
resourcecheck_check authz.ResourceCheck.check(string) authz.Decision
decision_error authz.Decision.error() string
decision_errored authz.Decision.errored() bool
authorizer_fieldselector authz.ResourceCheck.fieldSelector(string) authz.ResourceCheck
authorizer_group authz.Authorizer.group(string) authz.GroupCheck
authorizer_labelselector authz.ResourceCheck.labelSelector(string) authz.ResourceCheck
resourcecheck_name authz.ResourceCheck.name(string) authz.ResourceCheck
resourcecheck_namespace authz.ResourceCheck.namespace(string) authz.ResourceCheck
authorizer_path authz.Authorizer.path(string) authz.PathCheck
decision_reason authz.Decision.reason() string
groupcheck_resource authz.GroupCheck.resource(string) authz.ResourceCheck
authorizer_serviceaccount authz.Authorizer.serviceAccount(string, string) authz.Authorizer
resourcecheck_subresource authz.ResourceCheck.subresource(string) authz.ResourceCheck
"""

_SUMMABLE: Final = ("int", "uint", "double", "duration")
_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_PROTO_NAMES: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
_NUMBERS: Final = {"int": "int64", "uint": "uint64", "double": "double"}


def _comparisons() -> list[str]:
    found = []
    for word, sign in (("less", "<"), ("less_equals", "<="), ("greater", ">"), ("greater_equals", ">=")):
        found.append(f"{word}_bool _{sign}_(bool, bool) bool")
        for one, name in _NUMBERS.items():
            found.append(f"{word}_{name} _{sign}_({one}, {one}) bool")
            others = [other for other in ("double", "int", "uint") if other != one]
            found += [f"{word}_{name}_{_NUMBERS[other]} _{sign}_({one}, {other}) bool" for other in others]
        found += [
            f"{word}_{each} _{sign}_({each}, {each}) bool" for each in ("string", "bytes", "timestamp", "duration")
        ]
    return found


def _of_elements() -> list[str]:
    """Functions of lists with one overload for each type that elements can have."""
    found = [f"list_{each}_sum_{each} list({each}).sum() {each}" for each in _SUMMABLE]
    for each in _COMPARABLE:
        name = _PROTO_NAMES.get(each, each)
        found += [
            f"list_{each}_is_sorted_bool list({each}).isSorted() bool",
            f"list_{each}_max_{each} list({each}).max() {each}",
            f"list_{each}_min_{each} list({each}).min() {each}",
            f"list_{name}_sort list({each}).sort() list({each})",
            f"list_{name}_sortByAssociatedKeys list(T).@sortByAssociatedKeys(list({each})) list(T)",
        ]
    return found


SIGNATURES: Final = (
    [
        line
        for table in (_STANDARD, _KUBERNETES, _STRINGS, _LISTS, _OPTIONALS, _AUTHORIZER)
        for line in table.strip().splitlines()
    ]
    + _comparisons()
    + _of_elements()
)
