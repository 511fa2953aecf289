//! Information elements that we send or read, by their IANA numbers ("IP Flow Information Export (IPFIX) Entities").

/// An information element: a number in the space of an enterprise, 0 being IANA's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Element {
    /// Private enterprise number; 0 for IANA's elements.
    pub enterprise: u32,
    /// Number, without the enterprise bit.
    pub id: u16,
}

impl Element {
    /// An IANA element.
    pub const fn iana(id: u16) -> Self {
        Self { enterprise: 0, id }
    }

    /// An IANA element for the reverse direction (RFC 5103 6.1).
    pub const fn reverse(id: u16) -> Self {
        Self { enterprise: REVERSE, id }
    }
}

/// The enterprise number of reverse IANA elements (RFC 5103 6.1).
pub const REVERSE: u32 = 29305;

/// octetDeltaCount.
pub const OCTETS: u16 = 1;
/// packetDeltaCount.
pub const PACKETS: u16 = 2;
/// protocolIdentifier.
pub const PROTOCOL: u16 = 4;
/// ipClassOfService.
pub const TOS: u16 = 5;
/// tcpControlBits.
pub const TCP_FLAGS: u16 = 6;
/// sourceTransportPort.
pub const SPORT: u16 = 7;
/// sourceIPv4Address.
pub const SRC4: u16 = 8;
/// ingressInterface.
pub const INGRESS: u16 = 10;
/// destinationTransportPort.
pub const DPORT: u16 = 11;
/// destinationIPv4Address.
pub const DST4: u16 = 12;
/// flowEndSysUpTime.
pub const END_UPTIME: u16 = 21;
/// flowStartSysUpTime.
pub const START_UPTIME: u16 = 22;
/// egressInterface.
pub const EGRESS: u16 = 14;
/// minimumIpTotalLength.
pub const MIN_LENGTH: u16 = 25;
/// maximumIpTotalLength.
pub const MAX_LENGTH: u16 = 26;
/// minimumTTL.
pub const MIN_TTL: u16 = 52;
/// maximumTTL.
pub const MAX_TTL: u16 = 53;
/// sourceIPv6Address.
pub const SRC6: u16 = 27;
/// destinationIPv6Address.
pub const DST6: u16 = 28;
/// icmpTypeCodeIPv4.
pub const ICMP4: u16 = 32;
/// samplingInterval: one packet in this many.
pub const SAMPLING_INTERVAL: u16 = 34;
/// samplingAlgorithm: 1 deterministic, 2 random.
pub const SAMPLING_ALGORITHM: u16 = 35;
/// exportedOctetTotalCount.
pub const EXPORTED_OCTETS: u16 = 40;
/// exportedMessageTotalCount.
pub const EXPORTED_MESSAGES: u16 = 41;
/// exportedFlowRecordTotalCount.
pub const EXPORTED_FLOWS: u16 = 42;
/// vlanId.
pub const VLAN: u16 = 58;
/// sourceMacAddress.
pub const SRC_MAC: u16 = 56;
/// destinationMacAddress.
pub const DST_MAC: u16 = 80;
/// mplsTopLabelStackSection. The sections of the labels below it have the numbers behind: mplsLabelStackSection2 is 71.
pub const LABEL: u16 = 70;
/// interfaceName.
pub const INTERFACE_NAME: u16 = 82;
/// interfaceDescription.
pub const INTERFACE_DESCRIPTION: u16 = 83;
/// octetTotalCount.
pub const OCTETS_TOTAL: u16 = 85;
/// packetTotalCount.
pub const PACKETS_TOTAL: u16 = 86;
/// flowEndReason.
pub const END_REASON: u16 = 136;
/// icmpTypeCodeIPv6.
pub const ICMP6: u16 = 139;
/// exportingProcessId.
pub const EXPORTING_PROCESS: u16 = 144;
/// observationDomainId.
pub const DOMAIN: u16 = 149;
/// flowStartSeconds.
pub const START_S: u16 = 150;
/// flowEndSeconds.
pub const END_S: u16 = 151;
/// flowStartMilliseconds.
pub const START_MS: u16 = 152;
/// flowEndMilliseconds.
pub const END_MS: u16 = 153;
/// flowStartMicroseconds.
pub const START_US: u16 = 154;
/// flowEndMicroseconds.
pub const END_US: u16 = 155;
/// flowStartNanoseconds.
pub const START_NS: u16 = 156;
/// flowEndNanoseconds.
pub const END_NS: u16 = 157;
/// flowStartDeltaMicroseconds: before the export time.
pub const START_AGO_US: u16 = 158;
/// flowEndDeltaMicroseconds: before the export time.
pub const END_AGO_US: u16 = 159;
/// systemInitTimeMilliseconds.
pub const INIT_MS: u16 = 160;
/// notSentFlowTotalCount.
pub const NOT_SENT_FLOWS: u16 = 166;
/// notSentPacketTotalCount.
pub const NOT_SENT_PACKETS: u16 = 167;
/// notSentOctetTotalCount.
pub const NOT_SENT_OCTETS: u16 = 168;
/// observationTimeMilliseconds: two in a record are the first and the last time.
pub const OBSERVATION_MS: u16 = 323;
/// templateId.
pub const TEMPLATE: u16 = 145;
/// dataRecordsReliability, by template: true is 1, false is 2.
pub const RELIABILITY: u16 = 276;
/// icmpTypeIPv4.
pub const ICMP4_TYPE: u16 = 176;
/// icmpCodeIPv4.
pub const ICMP4_CODE: u16 = 177;
/// icmpTypeIPv6.
pub const ICMP6_TYPE: u16 = 178;
/// icmpCodeIPv6.
pub const ICMP6_CODE: u16 = 179;
/// initiatorOctets.
pub const INITIATOR_OCTETS: u16 = 231;
/// responderOctets.
pub const RESPONDER_OCTETS: u16 = 232;
/// dot1qVlanId.
pub const DOT1Q_VLAN: u16 = 243;
/// dot1qPriority.
pub const DOT1Q_PRIORITY: u16 = 244;
/// dot1qCustomerVlanId.
pub const CUSTOMER_VLAN: u16 = 245;
/// dot1qCustomerPriority.
pub const CUSTOMER_PRIORITY: u16 = 246;
/// initiatorPackets.
pub const INITIATOR_PACKETS: u16 = 298;
/// responderPackets.
pub const RESPONDER_PACKETS: u16 = 299;
/// selectorId.
pub const SELECTOR: u16 = 302;
/// selectorAlgorithm: 1 systematic count-based, 3 random n out of N (RFC 5477 8.2.1).
pub const SELECTOR_ALGORITHM: u16 = 304;
/// samplingPacketInterval: packets selected in a row.
pub const PACKET_INTERVAL: u16 = 305;
/// samplingPacketSpace: packets not selected after them.
pub const PACKET_SPACE: u16 = 306;
/// samplingSize: n.
pub const SAMPLING_SIZE: u16 = 309;
/// samplingPopulation: N.
pub const SAMPLING_POPULATION: u16 = 310;
/// layer2OctetDeltaCount.
pub const LAYER2_OCTETS: u16 = 352;
/// layer2SegmentId: the encapsulation in the top byte (1: VXLAN), the VNI in the low three.
pub const SEGMENT: u16 = 351;
