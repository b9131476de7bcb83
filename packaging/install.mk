# make install / make uninstall: PREFIX (/usr/local), DESTDIR, and the directories below.
#
# packaging/*.in become gort.pc, gort-compact.pc and the CMake package; @NAME@ in them stands for a
# variable here.

PREFIX     ?= /usr/local
DESTDIR    ?=
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR    ?= $(PREFIX)/share
MANDIR     ?= $(DATADIR)/man
INSTALL    ?= install
VERSION    := $(shell sed -n 's/^.define GORT_VERSION "\(.*\)"/\1/p' include/gort.h)
SONAME     := libgort.so.$(firstword $(subst ., ,$(VERSION)))

MANPAGES   := $(wildcard man/*.[1-9])
SCRIPTS    := tools/gort-new tools/gort-run
# Built where their parts are present, and installed where they were built.
TOOLS       = $(wildcard $(OUT)/bin/*)
HOOK        = $(wildcard $(OUT)/libgort-hook.so)
COLLECTOR   = $(wildcard $(OUT)/libgort-gc.a)

PKGDIR      = $(LIBDIR)/pkgconfig
CMAKEDIR    = $(LIBDIR)/cmake/gort
# gdb loads a script of this name by itself when it meets the library; programs with libgort.a in
# them name it in a section (Makefile).
GDBDIR      = $(DATADIR)/gdb/auto-load$(LIBDIR)
GDBFILE     = libgort.so.$(VERSION)-gdb.py
fill        = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' \
              -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
              -e 's|@VERSION@|$(VERSION)|g' -e 's|@SONAME@|$(SONAME)|g' \
              -e "s|@INCLUDE_FROM_LIB@|$$(realpath -m --relative-to='$(LIBDIR)' '$(INCLUDEDIR)')|g"

# Programs with libgort.so start only where the loader finds it: a line says so where it does not.
define tell_the_loader
@PATH="$$PATH:/usr/sbin:/sbin"; [ "$$(id -u)" != 0 ] || ldconfig || true; \
	for found in $$(ldconfig -p 2>/dev/null | sed -n 's|^[[:space:]]*$(SONAME) .* => ||p'); do \
	    if [ "$$found" -ef '$(LIBDIR)/$(SONAME)' ]; then exit 0; fi; \
	done; \
	echo 'The loader does not look into $(LIBDIR): link programs with -Wl,-rpath,$(LIBDIR),'; \
	echo 'or run them with LD_LIBRARY_PATH=$(LIBDIR). Those with libgort.a need neither.'
endef

.PHONY: install uninstall
install: all
	$(INSTALL) -d '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(PKGDIR)' \
	    '$(DESTDIR)$(CMAKEDIR)' '$(DESTDIR)$(BINDIR)' \
	    '$(DESTDIR)$(DATADIR)/gort' '$(DESTDIR)$(GDBDIR)'
	$(INSTALL) -m 644 include/gort.h include/gort.hpp '$(DESTDIR)$(INCLUDEDIR)/'
	$(INSTALL) -m 644 $(OUT)/libgort.a $(OUT)/libgort-lean.a '$(DESTDIR)$(LIBDIR)/'
	$(name_script) '$(GDBDIR)/$(GDBFILE)' >$(OUT)/gort.script
	for lib in libgort libgort-lean; do $(OBJCOPY) --update-section \
	    $(GDB_SECTION)=$(OUT)/gort.script '$(DESTDIR)$(LIBDIR)'/$$lib.a || exit 1; done
	$(INSTALL) -m 755 $(OUT)/libgort.so '$(DESTDIR)$(LIBDIR)/libgort.so.$(VERSION)'
	ln -sf libgort.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(LIBDIR)/libgort.so'
	$(if $(HOOK),$(INSTALL) -m 755 $(HOOK) '$(DESTDIR)$(LIBDIR)/libgort-hook.so')
	$(if $(SPLIT),$(INSTALL) -m 644 $(SPLIT) '$(DESTDIR)$(LIBDIR)/libgort_split.a')
	$(if $(SPLIT),$(fill) packaging/gort-compact.pc.in >'$(DESTDIR)$(PKGDIR)/gort-compact.pc')
	$(if $(COLLECTOR),$(INSTALL) -m 644 $(COLLECTOR) '$(DESTDIR)$(LIBDIR)/libgort-gc.a')
	$(if $(COLLECTOR),$(fill) packaging/gort-gc.pc.in >'$(DESTDIR)$(PKGDIR)/gort-gc.pc')
	$(fill) packaging/gort.pc.in >'$(DESTDIR)$(PKGDIR)/gort.pc'
	$(fill) packaging/gort-config.cmake.in >'$(DESTDIR)$(CMAKEDIR)/gort-config.cmake'
	$(fill) packaging/gort-config-version.cmake.in \
	    >'$(DESTDIR)$(CMAKEDIR)/gort-config-version.cmake'
	for page in $(MANPAGES); do \
	    section='$(DESTDIR)$(MANDIR)'/man$${page##*.}; \
	    $(INSTALL) -d "$$section" && $(INSTALL) -m 644 $$page "$$section/" || exit 1; \
	done
	$(INSTALL) -m 755 $(TOOLS) $(SCRIPTS) '$(DESTDIR)$(BINDIR)/'
	$(INSTALL) -m 644 tools/gort-gdb.py '$(DESTDIR)$(DATADIR)/gort/gort-gdb.py'
	$(INSTALL) -m 644 tools/gort-gdb.py '$(DESTDIR)$(GDBDIR)/$(GDBFILE)'
	$(if $(DESTDIR),,$(tell_the_loader))

uninstall:
	rm -f '$(DESTDIR)$(INCLUDEDIR)/gort.h' '$(DESTDIR)$(INCLUDEDIR)/gort.hpp' \
	    '$(DESTDIR)$(PKGDIR)/gort.pc' \
	    '$(DESTDIR)$(PKGDIR)/gort-compact.pc' '$(DESTDIR)$(LIBDIR)/libgort_split.a' \
	    '$(DESTDIR)$(CMAKEDIR)/gort-config.cmake' \
	    '$(DESTDIR)$(CMAKEDIR)/gort-config-version.cmake' \
	    '$(DESTDIR)$(LIBDIR)/libgort.a' '$(DESTDIR)$(LIBDIR)/libgort-lean.a' \
	    '$(DESTDIR)$(LIBDIR)/libgort.so' \
	    '$(DESTDIR)$(LIBDIR)/$(SONAME)' \
	    '$(DESTDIR)$(LIBDIR)/libgort.so.$(VERSION)' '$(DESTDIR)$(LIBDIR)/libgort-hook.so' \
	    '$(DESTDIR)$(LIBDIR)/libgort-gc.a' '$(DESTDIR)$(PKGDIR)/gort-gc.pc' \
	    '$(DESTDIR)$(DATADIR)/gort/gort-gdb.py' '$(DESTDIR)$(GDBDIR)/$(GDBFILE)'
	for page in $(MANPAGES); do rm -f '$(DESTDIR)$(MANDIR)'/man$${page##*.}/$${page##*/}; done
	for tool in $(sort $(notdir $(TOOLS) $(TOOL_BIN) $(SCRIPTS))); do \
	    rm -f '$(DESTDIR)$(BINDIR)'/$$tool; \
	done
	rmdir '$(DESTDIR)$(CMAKEDIR)' '$(DESTDIR)$(DATADIR)/gort' 2>/dev/null || true
