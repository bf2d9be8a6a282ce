# Option ROM that reorders the CPUs in ACPI's MADT: the first thread of every core comes before all second threads, as
# in the firmware of many servers. Linux numbers CPUs in this order, so the SMT sibling of CPU n is n + N/2. QEMU has no
# option for it.
#
# The ROM runs while SeaBIOS initialises devices, when the tables are in memory and the kernel is not. Moving whole
# entries within the table does not change its checksum. References: ACPI 6.5, 5.2.5 (RSDP), 5.2.7 (RSDT), 5.2.12
# (MADT); PnP BIOS 1.0A, 3.2.

	.code16
	.text
header:
	.byte	0x55, 0xaa
	.byte	0			# length in units of 512 bytes: filled in by the build
	jmp	start
	.org	0x1a
	.word	plug_and_play
plug_and_play:				# without this header SeaBIOS treats the ROM as a boot device
	.ascii	"$PnP"
	.byte	1, 2			# revision, length in 16 bytes
	.word	0
	.byte	0, 0
	.long	0
	.word	maker, product
	.long	0
	.word	0, 0, 0, 0, 0
maker:	.asciz	"wqlab"
product: .asciz "SMT siblings last"

	.balign	8
descriptors:				# of the flat 4 GiB data segment
	.quad	0
	.quad	0x00cf93000000ffff

start:
	pushfw
	pushal
	pushw	%ds
	pushw	%es
	cli
	cld
	movw	%sp, %bp
	subw	$16, %sp
	sgdt	-8(%bp)
	xorl	%eax, %eax
	movw	%cs, %ax
	shll	$4, %eax
	addl	$descriptors, %eax
	movw	$15, -16(%bp)
	movl	%eax, -14(%bp)
	lgdtl	-16(%bp)
	# Loading a segment in protected mode leaves its 4 GiB limit in real mode.
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	movw	$8, %bx
	movw	%bx, %ds
	andb	$0xfe, %al
	movl	%eax, %cr0
	xorw	%bx, %bx
	movw	%bx, %ds

	movl	$0xe0000, %esi		# search the RSDP, which is aligned to 16 bytes
1:	cmpl	$0x20445352, (%esi)	# "RSD "
	jne	2f
	cmpl	$0x20525450, 4(%esi)	# "PTR "
	je	3f
2:	addl	$16, %esi
	cmpl	$0x100000, %esi
	jb	1b
	jmp	done

3:	movl	16(%esi), %esi		# the RSDT
	movl	4(%esi), %ecx
	addl	%esi, %ecx		# its end
	addl	$36, %esi
4:	cmpl	%ecx, %esi
	jae	done
	movl	(%esi), %ebx
	addl	$4, %esi
	cmpl	$0x43495041, (%ebx)	# "APIC"
	jne	4b

	movl	4(%ebx), %ecx
	addl	%ebx, %ecx		# the MADT's end
	leal	44(%ebx), %esi		# current entry
	movl	%esi, %edi		# destination of the next first thread
5:	cmpl	%ecx, %esi
	jae	done
	cmpw	$0x0800, (%esi)		# a local APIC: type 0, length 8; QEMU lists these first
	jne	done
	testb	$1, 3(%esi)		# the lowest bit of the APIC id is the thread
	jnz	8f
	pushl	(%esi)
	pushl	4(%esi)
	movl	%esi, %edx
6:	cmpl	%edi, %edx		# move the second threads before it up by one
	je	7f
	movl	-8(%edx), %eax
	movl	%eax, (%edx)
	movl	-4(%edx), %eax
	movl	%eax, 4(%edx)
	subl	$8, %edx
	jmp	6b
7:	popl	4(%edi)
	popl	(%edi)
	addl	$8, %edi
8:	addl	$8, %esi
	jmp	5b

done:
	lgdtl	-8(%bp)
	movw	%bp, %sp
	popw	%es
	popw	%ds
	popal
	popfw
	lret
